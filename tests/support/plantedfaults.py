"""Every function and method below some packages as a site that is made to raise, one at a time."""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FunctionType, ModuleType
from typing import Any

__all__ = ["PlantedFaults", "modules_below"]


@dataclass
class PlantedFaults:
    """The sites of some modules; the armed one raises at its next call."""

    modules: Iterable[ModuleType]
    spared: tuple[str, ...] = ()
    calls: list[str] = field(default_factory=list)
    armed: str = ""
    error: Callable[[], BaseException] = ValueError
    thrown: int = 0

    def arm(self, site: str, error: Callable[[], BaseException]) -> None:
        """Let the next call of a site raise."""
        self.armed, self.error, self.thrown = site, error, 0

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Make all functions and methods sites, as long as the block lasts."""
        undo: list[tuple[Any, str, Any]] = []
        try:
            for module in self.modules:
                for name, value in list(vars(module).items()):
                    if isinstance(value, FunctionType) and value.__module__ == module.__name__:
                        self._replace(undo, module, name, self._wrapped(f"{module.__name__}.{name}", value))
                    elif inspect.isclass(value) and value.__module__ == module.__name__:
                        self._methods(undo, value)
            yield
        finally:
            for owner, name, original in reversed(undo):
                setattr(owner, name, original)

    def _methods(self, undo: list[tuple[Any, str, Any]], owner: type) -> None:
        if issubclass(owner, BaseException) or getattr(owner, "_is_protocol", False):
            return
        for name, value in list(vars(owner).items()):
            if isinstance(value, FunctionType) and not name.startswith("__"):
                site = f"{owner.__module__}.{owner.__qualname__}.{name}"
                self._replace(undo, owner, name, self._wrapped(site, value))

    def _replace(self, undo: list[tuple[Any, str, Any]], owner: Any, name: str, made: Any) -> None:
        undo.append((owner, name, inspect.getattr_static(owner, name)))
        setattr(owner, name, made)

    def _wrapped(self, site: str, function: Any) -> Any:
        if site.endswith(self.spared):
            return function
        passed = self._passed

        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def later(*args: Any, **kwargs: Any) -> Any:
                passed(site)
                return await function(*args, **kwargs)

            return later

        @functools.wraps(function)
        def now(*args: Any, **kwargs: Any) -> Any:
            passed(site)
            return function(*args, **kwargs)

        return now

    def _passed(self, site: str) -> None:
        self.calls.append(site)
        if site == self.armed and not self.thrown:
            self.thrown += 1
            raise self.error()


def modules_below(*packages: str) -> list[ModuleType]:
    """Return the modules of packages, and of those below them."""
    found = []
    for package in packages:
        module = importlib.import_module(package)
        found.append(module)
        for info in pkgutil.walk_packages(getattr(module, "__path__", ()), f"{package}."):
            found.append(importlib.import_module(info.name))
    return found
