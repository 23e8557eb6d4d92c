"""Table `anchor`: reading and writing the anchors of pattern keys."""

from __future__ import annotations

from typing import Any

from pyverno.lang.pattern.anchors import Anchor, Modifier, parse_anchor
from pyverno.lang.pattern.validate import compile_pattern
from tests.conformance.outcome import Claim, NotRun

_MODIFIERS = {
    "Condition": Modifier.CONDITION,
    "Global": Modifier.GLOBAL,
    "Negation": Modifier.NEGATION,
    "AddIfNotPresent": Modifier.ADD_IF_ABSENT,
    "Equality": Modifier.EQUALITY,
    "Existence": Modifier.EXISTENCE,
}
_NAMES = {modifier: name for name, modifier in _MODIFIERS.items()}


def claim(row: dict[str, Any]) -> Claim:
    """Judge one row; rows about Go's own objects and errors have no counterpart."""
    want = row.get("want")
    match row["test"]:
        case "TestParse":
            return Claim(want, _shown(parse_anchor(row["str"])))
        case "TestNew":
            return Claim(want, _shown(parse_anchor(f"{_MODIFIERS[row['modifier']].value}({row['key']})")))
        case "TestString":
            return Claim(want, str(_anchor(row)) if row["key"] else "")
        case "Test_anchor_String":
            return Claim(want, str(_anchor(row)))
        case "Test_anchor_Key":
            return Claim(want, _anchor(row).key)
        case "Test_anchor_Type":
            return Claim(want, _NAMES[_anchor(row).modifier])
        case "TestRemoveAnchorsFromPath":
            segments = [segment for segment in row["str"].split("/") if segment]
            keys = [segment if (found := parse_anchor(segment)) is None else found.key for segment in segments]
            return Claim(want, ("/" if row["str"].startswith("/") else "") + "/".join(keys))
        case "Test_resourceHasValueForKey":
            return Claim(want, _has_key(row["resource"], row["key"]))
    raise NotRun("about Go objects that have no counterpart here")


def _anchor(row: dict[str, Any]) -> Anchor:
    return Anchor(_MODIFIERS[row["modifier"]], row["key"])


def _shown(anchor: Anchor | None) -> Any:
    return None if anchor is None else {"$type": "anchor", "$items": [_NAMES[anchor.modifier], anchor.key]}


def _has_key(resource: Any, key: str) -> bool:
    """Ask by a condition: it skips exactly where the key is missing."""
    if not isinstance(resource, dict):
        raise NotRun("about Go objects that have no counterpart here")
    return compile_pattern({f"X({key})": "null"}).match(resource).status.value != "pass"
