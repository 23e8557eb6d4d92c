"""Patterns and overlays that are derived from resources, so that about half of them match."""

from __future__ import annotations

from random import Random

from pyverno.kube.json import JSON, JSONObject
from tests.differential.generate.draws import chance, some

__all__ = ["json_patch", "overlay_of", "paths", "pattern_of"]

_TEXT_LEAVES = (
    "*", "?*", "?", "", "a*", "!a", "!a*", "!?*", "*b*", "a | b", "web | db | ?*", "!web & !db", "null", "true",
    ">0", "<5", ">=1", "<=60", "=5", "1-10", "1!-10", "!1-5", ">=1 & <5", "<1Gi", ">=100m", "<=500m", "1Mi-1Gi",
    ">1m", "<1h", ">=10s | <1s", "!*:latest", "*:*", "ghcr.io/*", ">1.2.3", "5", "5.0", "0", "1Gi", "500m",
)  # fmt: skip
_LEAVES: tuple[JSON, ...] = (*_TEXT_LEAVES, None, True, False, 0, 1, 5, 1.5, 8080)
_ANCHORS = ("({})", "({})", "=({})", "=({})", "^({})", "X({})", "<({})")


def pattern_of(random: Random, value: JSON, *, anchors: float = 0.25) -> JSON:
    """Return a pattern about some of what a value has."""
    if isinstance(value, dict):
        return _pattern_of_map(random, value, anchors)
    if isinstance(value, list):
        if not value:
            return random.choice(([], "?*", [{"name": "?*"}], ["*"]))
        if chance(random, 0.1):
            return random.choice(_LEAVES)
        items = [pattern_of(random, item, anchors=anchors) for item in some(random, value, 1, 2)]
        return items[:1] if chance(random, 0.7) else items
    return _leaf(random, value)


def _pattern_of_map(random: Random, value: JSONObject, anchors: float) -> JSON:
    if not value:
        return random.choice(({}, "?*", {"a": "?*"}, {"=(a)": "b"}))
    if chance(random, 0.04):
        return random.choice(_LEAVES)
    found: JSONObject = {}
    for key in some(random, tuple(value), 1, 3):
        below = pattern_of(random, value[key], anchors=anchors)
        if key in ("labels", "annotations"):
            below = _with_texts(below)
        written = random.choice(_ANCHORS).format(key) if chance(random, anchors) else key
        if written.startswith("X("):
            below = "null"
        if written.startswith("^(") and not (isinstance(below, list) and below and isinstance(below[0], dict)):
            written = key
        found[written] = below
    if chance(random, 0.15):
        found[random.choice(("missing", "=(missing)", "(missing)", "X(missing)"))] = random.choice(("?*", "a", "null"))
    return found


def _with_texts(value: JSON) -> JSON:
    """Return labels as policies may write them: all values are texts."""
    if not isinstance(value, dict):
        return {"app": "?*"}
    return {key: below if isinstance(below, str) else "?*" for key, below in value.items()}


def _leaf(random: Random, value: JSON) -> JSON:
    roll = random.random()
    if roll < 0.35:
        return value
    if roll < 0.5 and isinstance(value, str) and value:
        cut = random.randrange(len(value))
        return random.choice((value[:cut] + "*", "*" + value[cut:], "!" + value, value + " | b", "a | " + value))
    if roll < 0.6 and isinstance(value, int | float) and not isinstance(value, bool):
        return random.choice((f">{value}", f"<={value}", f"{value}-{value + 5}", str(value), f"!{value}"))
    return random.choice(_LEAVES)


def overlay_of(random: Random, value: JSON, *, depth: int = 0) -> JSON:
    """Return an overlay that changes, adds or removes something of a value."""
    if isinstance(value, dict) and value:
        return _overlay_of_map(random, value, depth)
    if isinstance(value, list) and value:
        if not isinstance(value[0], dict):
            return random.choice((["x"], [*value, "x"], [], value))
        return [_overlay_of_item(random, item, depth) for item in some(random, value, 1, 2)]
    return random.choice((value, "x", 1, True, {"x": "y"}, ["x"]) if depth > 1 else (value, "x"))


def _overlay_of_map(random: Random, value: JSONObject, depth: int) -> JSONObject:
    found: JSONObject = {}
    for key in some(random, tuple(value), 1, 3):
        if key in ("name", "apiVersion", "kind", "namespace"):
            continue
        roll = random.random()
        if roll < 0.1:
            found[f"({key})"] = pattern_of(random, value[key], anchors=0)
        elif roll < 0.2:
            found[f"+({key})"] = overlay_of(random, value[key], depth=depth + 1)
        elif roll < 0.27 and depth > 0:
            found[key] = None
        else:
            found[key] = overlay_of(random, value[key], depth=depth + 1)
        written = next(reversed(found))
        if key in ("labels", "annotations") and found[written] is not None:
            found[written] = _with_texts(found[written])
    if chance(random, 0.4):
        key = random.choice(("added", "+(added)", "+(extra)"))
        found[key] = random.choice(("x", "2", {"y": "z"}) if depth > 1 else ({"y": "z"},))
    return found


def _overlay_of_item(random: Random, item: JSON, depth: int) -> JSON:
    if not isinstance(item, dict):
        return item
    # what null and equal merge keys do to items is in the list of differences
    changed = {key: value for key, value in _overlay_of_map(random, item, depth + 1).items() if value is not None}
    if "name" in item:
        roll = random.random()
        if roll < 0.4:
            return {"(name)": random.choice(("*", item["name"], "c*")), **changed}
        if roll < 0.9:
            return {"name": random.choice((item["name"], item["name"], "fresh")), **changed}
    return changed


def json_patch(random: Random, value: JSONObject) -> list[JSONObject]:
    """Return operations of a JSON patch, most of them about what a value has."""
    places = [place for place, _ in paths(value) if place.count("/") > 1 and not place.startswith("/metadata/name")]
    found: list[JSONObject] = []
    for _ in range(random.randint(1, 3)):
        place = random.choice(places or ["/metadata/labels"])
        operation = random.choice(("add", "add", "replace", "remove", "copy", "move", "test"))
        step: JSONObject = {"op": operation, "path": place}
        if operation in ("copy", "move"):
            step["from"] = random.choice(places or ["/metadata"])
            step["path"] = "/metadata/annotations/copied"
        elif operation != "remove":
            parent, _, last = place.rpartition("/")
            # items without merge keys are in the list of differences
            step["value"] = {"name": "fresh"} if last.isdigit() else random.choice(("x", "1"))
            if operation == "add" and chance(random, 0.6):
                step["path"] = f"{parent}/{random.choice(('-', '0')) if last.isdigit() else 'new'}"
        found.append(step)
    return found


def paths(value: JSON, prefix: str = "") -> list[tuple[str, JSON]]:
    """Return every place of a value as a JSON pointer, with the value there."""
    found = [(prefix, value)]
    if isinstance(value, dict):
        for key, below in value.items():
            found += paths(below, f"{prefix}/{key.replace('~', '~0').replace('/', '~1')}")
    elif isinstance(value, list):
        for index, below in enumerate(value):
            found += paths(below, f"{prefix}/{index}")
    return found
