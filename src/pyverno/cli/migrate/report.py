"""The report of a conversion: one line for each rule, as text, JSON or markdown."""

from __future__ import annotations

from collections.abc import Sequence

from pyverno.compiler.migration.outcome import Note, Refused
from pyverno.kube.json import JSONObject, encode_indent
from pyverno.report.markdown import markdown_table
from pyverno.sinks.characters import block, one_line
from pyverno.value import dataclass

__all__ = ["RuleLine", "render_report"]


@dataclass(frozen=True, slots=True)
class RuleLine:
    """The line of one rule, or of a document without rules.

    `state` is `converted (tested)`, `converted, not tested`, `converted, differs` or `not convertible`; `reason`
    follows where there is more.
    """

    source: str
    policy: str
    rule: str
    state: str
    policies: tuple[str, ...] = ()
    reason: str = ""
    refused: Refused | None = None
    notes: tuple[Note, ...] = ()

    @property
    def is_good(self) -> bool:
        """Whether nothing is left to do."""
        return self.state == "converted (tested)"

    @property
    def text(self) -> str:
        """The line for people.

        >>> refused = Refused("roles", "match", "no roles", "groups")
        >>> RuleLine("a.yaml", "p", "r", "not convertible", refused=refused).text
        'p/r: not convertible because of match: no roles (roles); next: groups'
        """
        name = one_line(f"{self.policy}/{self.rule}" if self.rule else self.policy)
        if self.refused is not None:
            place = f" because of {self.refused.path}" if self.refused.path else ""
            advice = f"; next: {self.refused.advice}" if self.refused.advice else ""
            return f"{name}: {self.state}{place}: {self.refused.reason} ({self.refused.code}){advice}"
        arrow = f" -> {one_line(', '.join(self.policies))}" if self.policies else ""
        reason = f": {self.reason}" if self.reason else ""
        return f"{name}: {self.state}{arrow}{reason}"

    def to_json(self) -> JSONObject:
        """Return the line for programs."""
        found: JSONObject = {"source": self.source, "policy": self.policy, "rule": self.rule, "state": self.state}
        if self.policies:
            found["policies"] = list(self.policies)
        if self.reason:
            found["reason"] = self.reason
        if self.refused is not None:
            found |= {
                "code": self.refused.code,
                "path": self.refused.path,
                "reason": self.refused.reason,
                "next": self.refused.advice,
            }
        if self.notes:
            found["notes"] = [{"code": each.code, "path": each.path, "text": each.text} for each in self.notes]
        return found


def render_report(lines: Sequence[RuleLine], form: str) -> str:
    """Return the report in a format."""
    if form == "json":
        return encode_indent({"rules": [each.to_json() for each in lines]}) + "\n"
    if form == "markdown":
        return _markdown(lines)
    written = []
    for each in lines:
        written.append(block(each.text, "    "))
        notes = (f"{note.path}: {note.text}" if note.path else note.text for note in each.notes)
        written += [block(f"  note: {note}", "    ") for note in notes]
    good = sum(each.is_good for each in lines)
    return "".join(f"{line}\n" for line in written) + f"{good} of {len(lines)} converted and tested\n"


def _markdown(lines: Sequence[RuleLine]) -> str:
    rows = []
    for each in lines:
        todo = each.reason
        if each.refused is not None:
            todo = f"{each.refused.path}: {each.refused.reason}. {each.refused.advice}"
        cells = (each.policy, each.rule, each.state, ", ".join(each.policies), todo.strip())
        rows.append(cells)
    return markdown_table(("policy", "rule", "outcome", "now in", "what to do"), rows)
