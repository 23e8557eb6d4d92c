"""The configuration that the real tool reads beside scenarios: whether files are templates, and how long it tries."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from pyverno.kube.json import JSONObject
from pyverno.kube.yaml.documents import load_documents

__all__ = ["Configuration", "configuration_of", "seconds"]

_FILE: Final = ".chainsaw.yaml"
_DEFAULTS: Final = {"apply": 5.0, "assert": 30.0, "delete": 15.0, "error": 30.0}
_LONGEST: Final = 30.0
"""No operation is tried for longer: what has not come true by then does not."""
_KINDS: Final = {"create": "apply", "patch": "apply", "update": "apply", "wait": "assert"}
_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


@dataclass(frozen=True, slots=True)
class Configuration:
    """The configuration: whether texts in parentheses are expressions, and the timeouts by kind of operation."""

    templates: bool = True
    timeouts: Mapping[str, float] = field(default_factory=lambda: _DEFAULTS)

    def with_timeouts(self, written: Mapping[str, Any]) -> Configuration:
        """Return a configuration with the timeouts that a scenario or a step sets."""
        return replace(self, timeouts={**self.timeouts, **{key: seconds(str(text)) for key, text in written.items()}})

    def patience(self, operation: str, detail: JSONObject) -> float:
        """Return for how many seconds an operation is tried again."""
        own = detail.get("timeout")
        kind = _KINDS.get(operation, operation)
        return min(seconds(str(own)) if own else self.timeouts.get(kind, 0.0), _LONGEST)


def configuration_of(folder: Path, read: Callable[[Path], str]) -> Configuration:
    """Return the configuration of the nearest folder that has one."""
    path = next((each / _FILE for each in (folder, *folder.parents) if (each / _FILE).is_file()), None)
    if path is None:
        return Configuration()
    spec = load_documents(read(path), file=path.name)[0].value["spec"]
    # the two versions of the file name the switch differently
    templates = (spec.get("templating") or {}).get("enabled", spec.get("template", True))
    return replace(Configuration().with_timeouts(spec.get("timeouts") or {}), templates=templates)


def seconds(text: str) -> float:
    """Read a duration as Go writes it.

    >>> seconds("1m30s"), seconds("200ms")
    (90.0, 0.2)
    """
    return sum(float(number) * _UNITS[unit] for number, unit in re.findall(r"([\d.]+)(ms|s|m|h)", text))
