"""The document around a cursor: schemas at its paths, the kind that it matches, and the language of expressions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyverno.kube.gvk import parse_api_version
from pyverno.lazyregex import regex
from pyverno.policy.kinds import KNOWN_KINDS, Family, PolicyKind, find_kind
from pyverno.ui.authoring.outline import Path, read_outline
from pyverno.ui.authoring.schemas import Node, Schemas

__all__ = ["CEL", "JMESPATH", "DocumentView"]

JMESPATH: Final = "JMESPath"
CEL: Final = "CEL"
_ANCHORED: Final = regex(r"[=+^X<]?\((.+)\)")
_PATTERNS: Final = frozenset(("pattern", "anyPattern", "patchStrategicMerge"))
_CEL_RULES: Final = frozenset(("cel", "celPreconditions"))
_JMESPATH_KEYS: Final = frozenset(("jmesPath", "list"))


class DocumentView:
    """The document; its text may be unfinished."""

    def __init__(self, lines: Sequence[str], schemas: Schemas) -> None:
        """Read the outline."""
        self.entries = tuple(read_outline(lines))
        self.schemas = schemas
        top = {entry.path[0]: entry.value.strip("\"' ") for entry in self.entries if len(entry.path) == 1}
        self.api_version, self.kind = top.get("apiVersion", ""), top.get("kind", "")
        self.group = parse_api_version(self.api_version)[0] if self.api_version.count("/") < 2 else ""

    @property
    def policy_kind(self) -> PolicyKind | None:
        """The row of the policy kind; None for other objects."""
        return find_kind(self.group, self.kind)

    def node(self, path: Path) -> Node | None:
        """Return the schema at a path; below a pattern, the schema of the kind that the rule matches."""
        found = self.schemas.find(self.api_version, self.kind)
        for number, step in enumerate(path):
            if found is None:
                return None
            if step in _PATTERNS and self.policy_kind is not None:
                below = path[number + 1 :]
                is_list = step == "anyPattern" and isinstance(below[0] if below else "", int)
                return self._object_node(path, below[1:] if is_list else below)
            found = found.step(step)
        return found

    def object_node(self, path: Path, names: Sequence[str]) -> Node | None:
        """Return the schema below the object that the rule at a path matches."""
        return self._object_node(path, names)

    def language(self, path: Path, before: str) -> str:
        """Return the language of the expression at a path, given its text up to the cursor; empty for plain text."""
        row = self.policy_kind
        if row is None:
            return ""
        key = next((step for step in reversed(path) if isinstance(step, str)), "")
        is_cel = row.family in (Family.CEL, Family.ADMISSION, Family.CEL_EXCEPTION) or not _CEL_RULES.isdisjoint(
            step for step in path if isinstance(step, str)
        )
        if is_cel:
            return CEL if key.lower().endswith("expression") else ""
        if before.rfind("{{") > before.rfind("}}") or key in _JMESPATH_KEYS:
            return JMESPATH
        return ""

    def _object_node(self, path: Path, below: Sequence[str | int]) -> Node | None:
        kind = self._matched_kind(path)
        found = self.schemas.kind_named(kind) if kind else None
        for step in below:
            if found is None:
                return None
            found = found.step(_without_anchor(step) if isinstance(step, str) else step)
        return found

    def _matched_kind(self, path: Path) -> str:
        """Return the first kind that a rule at a path, or its policy, matches."""
        rule = path[:3] if path[:2] == ("spec", "rules") else ()
        for entry in self.entries:
            if entry.path[: len(rule)] != rule or "exclude" in entry.path:
                continue
            step = entry.path[-1]
            name = entry.path[-2] if isinstance(step, int) and len(entry.path) > 1 else step
            values = [each.strip(" \"'") for each in entry.value.strip("[] ").split(",")]
            if not values[0] or name not in ("kinds", "resources"):
                continue
            if name == "kinds":
                return values[0].rpartition("/")[2]
            if "resourceRules" in entry.path and (named := KNOWN_KINDS.named(values[0])):
                return named[0].kind
        return ""


def _without_anchor(step: str) -> str:
    found = _ANCHORED.fullmatch(step)
    return found[1] if found else step
