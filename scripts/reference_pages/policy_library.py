"""The page of the policy library, made from what the policies say of themselves."""

from __future__ import annotations

from itertools import groupby

from pyverno.offline.policylibrary import CEL_DIALECT, Control, list_controls
from scripts.reference_pages.markdown import cell, page, table

__all__ = ["policy_library"]

_LIBRARY = "../../policies"


def policy_library() -> str:
    """Return a table of controls for each category, with links to both dialects."""
    controls = list_controls()
    cel = {control.name.removeprefix(f"{CEL_DIALECT}/"): control for control in controls if control.is_cel}
    patterns = {control.name: control for control in controls if not control.is_cel}
    shown = [patterns.get(name) or cel[name] for name in sorted({*patterns, *cel})]
    parts = []
    for folder, members in groupby(
        shown, key=lambda each: each.name.removeprefix(f"{CEL_DIALECT}/").rpartition("/")[0]
    ):
        rows = [_row(each, is_pattern=each.name in patterns, twin=cel.get(each.name)) for each in members]
        parts.append(f"## {folder}\n\n{table(('policy', 'severity', 'about', 'kinds', 'standards'), rows)}")
    return page(
        "Policy library",
        f"{len(shown)} controls. `pyverno policies show NAME` prints one, `pyverno apply @NAME` applies it; a folder "
        "(`@pod-security/baseline`) stands for all in it. *cel* links the same control as a CEL policy (`@cel/...`).",
        "\n\n".join(parts),
    )


def _row(control: Control, *, is_pattern: bool, twin: Control | None) -> tuple[str, ...]:
    name = control.name.rpartition("/")[2]
    link = f"[{name}]({_LIBRARY}/{control.name})"
    if is_pattern and twin is not None:
        link += f" · [cel]({_LIBRARY}/{twin.name})"
    return (
        link,
        control.severity,
        cell(control.description),
        cell(control.subject),
        cell("; ".join(control.standards)),
    )
