"""Validate the excludes of a podSecurity rule or exception at compile time.

The texts are Kyverno's.
(Kyverno: api/kyverno/v1, ValidatePSaControlNames)
"""

from __future__ import annotations

from collections.abc import Iterator

from pyverno.kube.json import JSON, JSONObject, encode
from pyverno.podsecurity.control import Control, Reach
from pyverno.podsecurity.controls import CONTROLS
from pyverno.value import dataclass

__all__ = ["ExcludeProblem", "exclude_problems"]

_BY_NAME: dict[str, Control] = {control.name: control for control in CONTROLS if control.name}


@dataclass(frozen=True, slots=True)
class ExcludeProblem:
    """One problem of one exclude: where, which value (None when the field is forbidden or missing), and why.

    >>> ExcludeProblem("podSecurity.exclude[0].values", None, "values is required").message
    'podSecurity.exclude[0].values: Forbidden: values is required'
    """

    path: str
    value: str | None
    text: str

    @property
    def message(self) -> str:
        """The problem as the Kubernetes API server words it."""
        if self.value is None:
            return f"{self.path}: Forbidden: {self.text}"
        return f"{self.path}: Invalid value: {encode(self.value)}: {self.text}"


def exclude_problems(
    excludes: JSON, *, level: str | None = None, path: str = "podSecurity.exclude"
) -> tuple[ExcludeProblem, ...]:
    """Return every problem of a list of excludes.

    `level` is the rule's level, or None for the entries of an exception, which know no level; `path` is where the
    list is. Values of the wrong type are left to the schema of the document.

    >>> [problem.text for problem in exclude_problems([{"controlName": "Capabilities"}], level="baseline")]
    ['exclude.images must be specified for the container level control']
    """
    if not isinstance(excludes, list):
        return ()
    return tuple(
        problem
        for index, exclude in enumerate(excludes)
        if isinstance(exclude, dict)
        for problem in _problems(exclude, level, f"{path}[{index}]")
    )


def _problems(exclude: JSONObject, level: str | None, path: str) -> Iterator[ExcludeProblem]:
    name = exclude.get("controlName")
    name = name if isinstance(name, str) else ""
    control = _BY_NAME.get(name)
    if control is None:
        known = ", ".join(sorted(_BY_NAME))
        yield ExcludeProblem(f"{path}.controlName", name, f"unknown control `{name}`, expected one of {known}")
    images, values, field = bool(exclude.get("images")), bool(exclude.get("values")), exclude.get("restrictedField")
    if control is not None and control.reach is Reach.CONTAINER and not images:
        text = "exclude.images must be specified for the container level control"
        yield ExcludeProblem(f"{path}.controlName", name, text)
    if control is not None and control.reach is Reach.POD and images:
        text = "exclude.images must not be specified for the pod level control"
        yield ExcludeProblem(f"{path}.controlName", name, text)
    if field and not values:
        yield ExcludeProblem(f"{path}.values", None, "values is required")
    if values and not field:
        yield ExcludeProblem(f"{path}.restrictedField", None, "restrictedField is required")
    if level == "baseline" and control is not None and control.is_restricted_only:
        yield ExcludeProblem(f"{path}.controlName", name, "Invalid control name defined at the given level")
