"""Modules of others that a run may not need: loaded when something in them is first used.

They are named by modules that most runs need, ours and those of libraries, but most runs never come to the function
that uses them. `importlib.util.LazyLoader` is of no help: with it the second `import` of a module loads it. This module
must never name one that has an effect when it is imported.
"""

from __future__ import annotations

import sys
from _thread import RLock
from collections.abc import Iterable
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any

__all__ = ["LATER", "load_later"]

LATER = (
    *(
        "base64",
        "datetime",
        "decimal",
        "difflib",
        "fractions",
        "hashlib",
        "inspect",
        "ipaddress",
        "json",
        "secrets",
        "socket",
    ),
    *("uuid", "orjson", "re2"),
)
"""What waits: of the standard library, and of the libraries that this package stands on."""

_lock = RLock()


class _Later(ModuleType):
    """A module before it is loaded: the first name that is asked of it loads it."""

    def __getattr__(self, name: str) -> Any:
        with _lock:
            loader: Any = self.__loader__
            if type(self) is _Later and "__loading__" not in self.__dict__:
                self.__dict__["__loading__"] = True
                try:
                    loader.exec_module(self)
                    object.__setattr__(self, "__class__", ModuleType)
                finally:
                    del self.__dict__["__loading__"]
            # of a module, or of one that asks for itself while it is loaded
            return ModuleType.__getattribute__(self, name)


def load_later(names: Iterable[str] = LATER) -> None:
    """Let every import of these modules, anywhere, succeed at once and load nothing yet.

    A module that is loaded already stays so; one that is not installed is left to fail where it is imported.
    """
    for name in names:
        spec = None if name in sys.modules else find_spec(name)
        if spec is not None:
            module = module_from_spec(spec)
            module.__class__ = _Later
            sys.modules[name] = module
