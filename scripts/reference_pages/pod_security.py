"""The page of the Pod Security Standards."""

from __future__ import annotations

from pyverno.podsecurity.control import Control
from pyverno.podsecurity.controls import CONTROLS
from scripts.reference_pages.markdown import anchor, cell, code, page, table

__all__ = ["pod_security"]

_INTRO = """\
`validate.podSecurity` holds a pod (or the pod template of a controller) against a level of the Pod Security Standards
at a version: `level: baseline | restricted`, `version: v1.N | latest`. `exclude` names a control by the name below;
whether it must name images depends on where the control's fields live. A version chooses, for every check, its newest
variant that is not newer."""


def pod_security() -> str:
    """Return a table of the controls and one section each: fields, allowed values, checks by version."""
    rows = (
        (f"[{cell(each.title)}](#{anchor(each.title)})", _levels(each), each.reach.value, cell(each.what))
        for each in CONTROLS
    )
    head = table(("control", "level", "fields of", "restricts"), rows)
    return page("Pod Security controls", _INTRO, head, *map(_section, CONTROLS))


def _levels(each: Control) -> str:
    return ", ".join(dict.fromkeys(check.level.value for check in each.checks))


def _section(each: Control) -> str:
    name = f"Name in `exclude`: {code(each.name)}." if each.name else "No exclude can name this control."
    fields = "\n".join(f"- {code(field)}" for field in each.fields)
    variants = (
        (code(check.id), check.level.value, str(variant.since), cell(variant.note))
        for check in each.checks
        for variant in check.variants
    )
    return "\n\n".join(
        (
            f"## {each.title}",
            f"{each.what}. {each.why}",
            name,
            f"Fields:\n\n{fields}",
            f"Allowed: {each.allowed}.",
            table(("check", "level", "since", "change"), variants),
        )
    )
