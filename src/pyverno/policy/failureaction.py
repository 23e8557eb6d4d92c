"""The effect of a failing rule on an admission request, with overrides.

This module must not decide about requests (see the engine's decision).
"""

from __future__ import annotations

from enum import StrEnum

from pyverno.kube.json import JSONObject
from pyverno.kube.yaml.fieldpath import Path
from pyverno.policy.match import label_selector
from pyverno.policy.schema import Field, Record, choice, list_of, text
from pyverno.value import dataclass

__all__ = ["FAILURE_ACTION", "OVERRIDE", "FailureAction", "FailureActionOverride"]


class FailureAction(StrEnum):
    """Whether a failure blocks the request (Enforce) or is only reported (Audit)."""

    AUDIT = "Audit"
    ENFORCE = "Enforce"


@dataclass(frozen=True, slots=True)
class FailureActionOverride:
    """Another failure action for some namespaces."""

    action: FailureAction | None = None
    namespaces: tuple[str, ...] = ()
    namespace_selector: JSONObject | None = None
    path: Path = ()


# COMPAT: the lower-case words of old policies mean the same.
FAILURE_ACTION = choice(FailureAction, aliases={"audit": "Audit", "enforce": "Enforce"})

OVERRIDE = Record(
    FailureActionOverride,
    Field("action", FAILURE_ACTION),
    Field("namespaces", list_of(text)),
    Field("namespace_selector", label_selector),
)
