"""Audit annotations of policies that change or make objects: evaluated last, shown as properties of reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyverno.engine.actions.cel.validate import annotated
from pyverno.engine.cel.session import CelSession
from pyverno.engine.result import NO_PROPERTIES, Annotated, Verdict
from pyverno.engine.rule import Run
from pyverno.lang.cel import Program

__all__ = ["annotation_detail", "annotation_properties"]


def annotation_detail(session: CelSession, annotations: Sequence[tuple[str, Program]]) -> Annotated | None:
    """Return the evaluated annotations, None without any; raises their evaluation errors."""
    return Annotated(annotated(session, annotations, quote='"')) if annotations else None


def annotation_properties(run: Run, verdict: Verdict) -> Mapping[str, str]:
    """Return the properties of a report on a verdict."""
    return verdict.detail.properties if isinstance(verdict.detail, Annotated) else NO_PROPERTIES
