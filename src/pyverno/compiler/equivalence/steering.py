"""Objects that have all fields which policies read at once, and those that differ from them in one field, or in two.

A condition often needs several fields before one more decides: preconditions and the check, key and value of an entry.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, islice, zip_longest
from typing import Final

from pyverno.compiler.equivalence.items import item_edits, list_of_all
from pyverno.compiler.equivalence.places import NOTHING, Edit, Site, Steps, put
from pyverno.compiler.equivalence.readings import Reading
from pyverno.compiler.equivalence.variations import numbers_near, texts_near
from pyverno.engine.explain.samples import samples
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.kinds import KindInfo
from pyverno.kube.schemas import SchemaSet

__all__ = ["sites_of", "steered_objects"]

_TEMPLATES: Final = (("spec", "template"), ("spec", "jobTemplate", "spec", "template"))
_NEVER: Final = frozenset({"apiVersion", "kind", "status"})
_MOST_SITES: Final = 120
_MOST_VALUES: Final = 20
_MOST_IN_PAIRS: Final = 8
_PAIR_VALUES: Final = 3
_ROUNDS: Final = 4
_QUANTITIES: Final = ("100m", "1", "1Gi")
_PLAIN: Final = ("x", "")


def steered_objects(plain: JSONObject, sites: Sequence[Site], turn: tuple[int, int] = (0, 1)) -> Iterator[JSONObject]:
    """Yield the object with all sites set, with all but one, with other values at one place, with two sites set.

    `turn` is the number of the kind among how many: they share the series, each begins with its part of it.
    """
    if not sites:
        return
    base = _set_all(plain, sites, 0)
    yield from (base if each == 0 else _set_all(plain, sites, each) for each in range(_ROUNDS))
    singly, items = _edits(sites), item_edits(sites)
    edits = [each for found in zip_longest(singly, singly, items) for each in found if each is not None]
    number, many = turn
    for part in range(many):
        for on_base, changes in edits[(number + part) % many :: many]:
            body = base if on_base else plain
            for steps, value in changes:
                body = put(body, steps, value)
            yield body


def _edits(sites: Sequence[Site]) -> Iterator[Edit]:
    """Yield changes of the object with all sites set, or of the plain one, the most telling first."""
    for site in sites:
        yield True, ((site.steps, NOTHING),)
        yield False, ((site.steps, site.values[0]),)
    most = max(len(site.values) for site in sites)
    for is_own in (True, False):
        for number in range(1, most):
            for site in sites:
                if number < len(site.values) and (number < site.own) is is_own:
                    yield False, ((site.steps, site.values[number]),)
                    if number < _ROUNDS:
                        yield True, ((site.steps, site.values[number]),)
    for first, second in combinations(sites[:_MOST_IN_PAIRS], 2):
        for one in first.values[:_PAIR_VALUES]:
            for other in second.values[:_PAIR_VALUES]:
                yield False, ((first.steps, one), (second.steps, other))


def _set_all(plain: JSONObject, sites: Sequence[Site], number: int) -> JSONObject:
    body = plain
    for site in sites:
        body = put(body, site.steps, site.values[number % len(site.values)])
    return body


def sites_of(readings: Sequence[Reading], info: KindInfo, schemas: SchemaSet) -> tuple[Site, ...]:
    """Return the fields of a kind that policies read; what they read of a Pod is in the template of a controller.

    >>> from pyverno.kube.schemas import schema_set
    >>> from pyverno.policy.kinds import KNOWN_KINDS
    >>> reading = Reading(("spec", "containers", 0, "image"), ("nginx:*",))
    >>> (site,) = sites_of([reading], KNOWN_KINDS.by_kind("Job")[0], schema_set())
    >>> site.steps, site.values[:2]
    (('spec', 'template', 'spec', 'containers', 0, 'image'), ('nginx:', 'nginx:x'))
    """
    schema = schemas.find(info.group, info.version, info.kind)
    if schema is None:
        return ()
    found: dict[Steps, Site] = {}
    whole: dict[Steps, list[JSON]] = {}
    for reading in readings:
        for prefix in ((), *_TEMPLATES):
            steps = (*prefix, *reading.steps)
            place = _resolve(schema, steps, schemas)
            if place is None or steps[0] in _NEVER or steps == ("metadata",):
                continue
            values = tuple(islice(_values(place, reading.constants, schemas), _MOST_VALUES))
            holder = _resolve(schema, steps[:-1], schemas) if values else None
            if holder is not None and not holder.get("properties") and holder.get("additionalProperties"):
                # a map with another entry only is neither missing nor empty
                found.setdefault(steps[:-1], Site(steps[:-1], (_other_entry(holder["additionalProperties"]),)))
            if values:
                found.setdefault(steps, Site(steps, values, max(2, len(reading.constants))))
            for steps_of_list, value in _whole_lists(steps, place, reading):
                whole.setdefault(steps_of_list, []).append(value)
    for steps, lists in whole.items():
        site = found.get(steps) or Site(steps, ())
        found[steps] = Site(steps, (*site.values[:1], *lists, *site.values[1:]), site.own + len(lists))
    return tuple(islice(found.values(), _MOST_SITES))


def _other_entry(entries: object) -> JSONObject:
    """Return a map with an entry that no policy reads.

    >>> _other_entry({"type": "string"})
    {'other': 'x'}
    """
    return {"ephemeral-storage": "1Gi"} if "Quantity" in str(entries) else {"other": "x"}


def _whole_lists(steps: Steps, place: JSONObject, reading: Reading) -> Iterator[tuple[Steps, list[JSON]]]:
    """Yield lists that hold all constants which a policy writes as one list, and the places of the lists."""
    inner = (*steps, 0) if "array" in str(place.get("type")) else steps
    if any(isinstance(each, int) for each in inner):
        yield from (list_of_all(inner, constants) for constants in _enumerations(reading))


def _enumerations(reading: Reading) -> Iterator[Sequence[JSON]]:
    yield from reading.lists
    for each in reading.constants:
        if isinstance(each, str) and "|" in each:
            yield each.split("|")


def _resolve(schema: JSONObject, steps: Steps, schemas: SchemaSet) -> JSONObject | None:
    """Return the schema of a place, None where the kind has no such field."""
    found: JSONObject | None = schema
    for step in steps:
        if found is None:
            return None
        if isinstance(step, int):
            below = found.get("items")
        else:
            below = (found.get("properties") or {}).get(step)
            entries = found.get("additionalProperties")
            if below is None and not found.get("properties") and isinstance(entries, dict):
                below = entries
        found = schemas.followed(below) if isinstance(below, dict) else None
    return found


def _values(schema: JSONObject, constants: Sequence[JSON], schemas: SchemaSet) -> Iterator[object]:
    """Yield values for a place: those that fit the constants first, then those beside them."""
    types = schema.get("type")
    kind = next((each for each in types if each != "null"), "") if isinstance(types, list) else str(types or "")
    if schema.get("properties"):
        yield {}
        return
    match kind:
        case "boolean":
            yield from (True, False) if True in constants or "true" in constants else (False, True)
        case "integer" | "number":
            yield from dict.fromkeys((*numbers_near(_near(constants)), 0, 1))
        case "array":
            yield from _lists(schema, constants, schemas)
        case "object":
            return
        case _:
            if schema.get("x-kubernetes-int-or-string") or schema.get("format") == "int-or-string":
                yield from numbers_near(_near(constants))[:6]
            if schema.get("enum"):
                yield from schema["enum"]
                return
            texts = [each for each in _near(constants) if isinstance(each, str)]
            yield from dict.fromkeys((*texts, *(_QUANTITIES if _is_amount(schema, texts) else _PLAIN)))


def _lists(schema: JSONObject, constants: Sequence[JSON], schemas: SchemaSet) -> Iterator[object]:
    items = schemas.followed(schema.get("items") or {}) or {}
    if items.get("properties"):
        return
    single = [each for each in _values(items, constants, schemas) if each is not NOTHING]
    yield from ([each] for each in single[:4])
    if len(single) > 1:
        yield from (single[:2], [single[0], single[-1]], [single[-1], single[0]])
    yield []
    yield from ([each] for each in single[4:])


def _is_amount(schema: JSONObject, texts: Sequence[str]) -> bool:
    return "Quantity" in str(schema.get("$ref") or schema.get("title") or "") or bool(
        texts and all(each[:1].isdecimal() for each in texts)
    )


def _near(constants: Sequence[JSON]) -> list[JSON]:
    """Return values that fit constants or patterns, then the texts beside them, the first of each before the second."""
    fitting: dict[str, JSON] = {}
    plain: list[str] = []
    for each in constants:
        text = each.lstrip("!<>= ") if isinstance(each, str) else each
        for value in islice(samples(text), 3):
            fitting.setdefault(repr(value), value)
        if isinstance(text, str) and "\\" not in text and "\n" not in text and not {"*", "?"} & set(text):
            plain.append(text)
    series = [[*texts_near(each)][1:] for each in plain]
    beside = [row[number] for number in range(8) for row in series if number < len(row)]
    empty = fitting.pop(repr(""), None)
    return [*fitting.values(), *dict.fromkeys(beside), *([] if empty is None else [empty])]
