"""Objects that differ from a plain one in one field that the policies mention, for each value that matters.

Random objects seldom hit the boundary of a condition; these do, in a few hundred steps. They need not be valid.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, pairwise, product, zip_longest
from typing import Final

from pyverno.compiler.equivalence.places import put
from pyverno.compiler.equivalence.steering import sites_of, steered_objects
from pyverno.compiler.equivalence.variations import numbers_near, texts_near
from pyverno.compiler.equivalence.vocabulary import Vocabulary
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.kinds import KindInfo
from pyverno.kube.schemas import SchemaSet
from pyverno.value import dataclass

__all__ = ["plain_object", "systematic_objects"]

_STRUCTURE: Final = frozenset({"spec", "template", "jobTemplate", "metadata", "containers", "rules"})
_NEVER: Final = frozenset({"managedFields", "status", "ownerReferences", "finalizers", "apiVersion", "kind"})
_MAPS: Final = ("labels", "annotations")
_CONTAINERS: Final = ("initContainers", "ephemeralContainers")
_MOST_TEXTS: Final = 64
_MOST_FIELDS: Final = 4
_MOST_COMBINED: Final = 144
_FIRST: Final = 4
"""Combinations of the fields of an object that come up as early as single fields do."""

_MOST_PATHS: Final = 48
_COUNTING: Final = frozenset({"length", "size"})
_LONGEST: Final = 64
_MOST_LENGTHS: Final = 6
_DEEPEST: Final = 12
_QUANTITIES: Final = ("0", "100m", "1", "2", "512Mi", "1Gi", "2Gi")

Steps = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class _Place:
    """A place of an object and the values that go there."""

    steps: Steps
    values: tuple[JSON, ...]


def plain_object(info: KindInfo) -> JSONObject:
    """Return the smallest object of a kind: admission fills in what is required.

    >>> from pyverno.kube.kinds import BUILTIN_KINDS
    >>> plain_object(BUILTIN_KINDS.by_kind("Pod")[0])
    {'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': 'a', 'namespace': 'default'}}
    """
    metadata: JSONObject = {"name": "a"}
    if info.namespaced:
        metadata["namespace"] = "default"
    return {"apiVersion": info.api_version, "kind": info.kind, "metadata": metadata}


def systematic_objects(vocabulary: Vocabulary, info: KindInfo, schemas: SchemaSet) -> Iterator[JSONObject]:
    """Yield a plain object of a kind, and variants with the fields that policies mention set to each relevant value."""
    plain = plain_object(info)
    yield plain
    schema = schemas.find(info.group, info.version, info.kind)
    if schema is None:
        return
    turn = vocabulary.kinds.index(info) if info in vocabulary.kinds else 0
    sites = sites_of(vocabulary.readings, info, schemas)
    steered = steered_objects(plain, sites, (turn, max(1, len(vocabulary.kinds))))
    singly = _one_by_one(vocabulary, info, schemas, schema)
    for bodies in zip_longest(steered, steered, singly):
        yield from (each for each in bodies if each is not None)


def _one_by_one(vocabulary: Vocabulary, info: KindInfo, schemas: SchemaSet, schema: JSONObject) -> Iterator[JSONObject]:
    """Yield the plain object with one field set, each field that is mentioned anywhere in turn."""
    plain = plain_object(info)
    texts = _texts(vocabulary)
    places = [*islice(_places(vocabulary, schema, schemas, texts), _MOST_PATHS), *_metadata(vocabulary, info, texts)]
    for number in range(max((len(place.values) for place in places), default=0)):
        # each place in turn, so that few objects already reach all of them
        for place in places:
            if number < len(place.values):
                value = place.values[number]
                yield put(plain, place.steps, value)
                if "containers" in place.steps and place.steps[-1] != "containers":
                    yield from _elsewhere(plain, place.steps, value)


def _texts(vocabulary: Vocabulary) -> list[str]:
    """Return the constants and their neighbours, the first variation of each before the second ones."""
    found: dict[str, None] = {}
    constants = [
        each for each in vocabulary.constants if isinstance(each, str) and "\\" not in each and "\n" not in each
    ]
    series = [[*texts_near(each)] for each in constants]
    for number in range(max((len(each) for each in series), default=0)):
        found.update(dict.fromkeys(each[number] for each in series if number < len(each)))
    return [*dict.fromkeys(("", "x", "*", *list(found)[:_MOST_TEXTS]))]


def _metadata(vocabulary: Vocabulary, info: KindInfo, texts: Sequence[str]) -> Iterator[_Place]:
    names = [text for text in texts if text and len(text) <= 40]
    yield _Place(("metadata", "name"), tuple(names))
    if info.namespaced:
        yield _Place(("metadata", "namespace"), tuple(names))
    for length in _lengths(vocabulary):
        yield _Place(("metadata", "name"), ("x" * length,))
        for holder in (each for each in _MAPS if each in vocabulary.names):
            yield _Place(("metadata", holder), ({f"x{number}": "x" for number in range(length)},))
        if "finalizers" in vocabulary.names:
            yield _Place(("metadata", "finalizers"), ([f"example.com/x{number}" for number in range(length)],))
    for holder in _MAPS:
        for key in vocabulary.keys.get(holder, ()):
            yield _Place(("metadata", holder, key), tuple(texts))


def _places(
    vocabulary: Vocabulary, schema: JSONObject, schemas: SchemaSet, texts: Sequence[str], above: Steps = ()
) -> Iterator[_Place]:
    if len(above) > _DEEPEST:
        return
    for name, below in (schema.get("properties") or {}).items():
        is_known = name in vocabulary.names or name in _STRUCTURE
        if name in _NEVER or not is_known or (not above and name == "metadata"):
            continue
        found = schemas.followed(below)
        if found is None:
            continue
        steps = (*above, name)
        if found.get("properties"):
            if name in vocabulary.names:
                yield _Place(steps, ({},))
                yield from (_Place(steps, (each,)) for each in islice(_combine(vocabulary, found, schemas), _FIRST))
            yield from _places(vocabulary, found, schemas, texts, steps)
            continue
        match _type(found):
            case "array":
                yield from _of_list(vocabulary, found, schemas, texts, steps)
            case "object":
                yield from _of_map(vocabulary, found, texts, steps)
            case kind:
                yield _Place(steps, _scalars(found, kind, vocabulary, texts))


def _of_list(
    vocabulary: Vocabulary, schema: JSONObject, schemas: SchemaSet, texts: Sequence[str], steps: Steps
) -> Iterator[_Place]:
    items = schemas.followed(schema.get("items") or {}) or {}
    if items.get("properties"):
        if steps[-1] in vocabulary.names:
            # items have names of their own where they have any; admission fills in what else is required
            name = "name" if "name" in items["properties"] else ""
            long = tuple([{name: f"x{at}"} if name else {} for at in range(length)] for length in _lengths(vocabulary))
            yield _Place(steps, (*long, [], [{}], [{}, {}], [{}, {}, {}]))
        yield _Place(steps, tuple([each] for each in _combine(vocabulary, items, schemas)))
        yield from _places(vocabulary, items, schemas, texts, (*steps, 0))
        return
    values = _scalars(items, _type(items), vocabulary, texts)
    lists: list[JSON] = [[], *([each] for each in values)]
    lists += [[first, second] for first, second in pairwise(values)]
    texts_of = ([f"x{number}" for number in range(length)] for length in _lengths(vocabulary))
    yield _Place(steps, (*(texts_of if _type(items) == "string" else ()), *lists[:_MOST_TEXTS]))


def _lengths(vocabulary: Vocabulary) -> Sequence[int]:
    """Return the lengths of lists and maps next to those that policies compare with, if they count anything."""
    if vocabulary.names.isdisjoint(_COUNTING):
        return ()
    whole = (int(each) for each in vocabulary.constants if not isinstance(each, bool) and str(each).isdecimal())
    found = dict.fromkeys(near for each in whole if 3 <= each <= _LONGEST for near in (each + 1, each))
    return [*found][:_MOST_LENGTHS]


def _combine(vocabulary: Vocabulary, schema: JSONObject, schemas: SchemaSet) -> Iterator[JSONObject]:
    """Yield objects in which two to four mentioned fields have constants at once: conditions often ask for both."""
    constants = [each for each in vocabulary.constants if isinstance(each, str) and each and "\\" not in each]
    choices: dict[str, tuple[JSON, ...]] = {}
    for name, below in (schema.get("properties") or {}).items():
        found = schemas.followed(below) or {}
        if name not in vocabulary.names or name == "status":
            continue
        match _type(found):
            case "string":
                choices[name] = tuple(found.get("enum") or constants)
            case "boolean":
                choices[name] = (True, False)
            case "array" if _type(schemas.followed(found.get("items") or {}) or {}) == "string":
                choices[name] = tuple([each] for each in constants)
    if 1 < len(choices) <= _MOST_FIELDS:
        for values in islice(product(*choices.values()), _MOST_COMBINED):
            yield dict(zip(choices, values, strict=True))


def _of_map(vocabulary: Vocabulary, schema: JSONObject, texts: Sequence[str], steps: Steps) -> Iterator[_Place]:
    name = str(steps[-1])
    values = schema.get("additionalProperties")
    is_text = not isinstance(values, dict) or values.get("type") in ("string", None)
    keys = [*vocabulary.keys.get(name, ()), *(("cpu", "memory") if name in ("limits", "requests") else ())]
    for key in dict.fromkeys(keys):
        is_amount = name in ("limits", "requests", "hard", "capacity")
        yield _Place((*steps, key), (*_amounts(texts),) if is_amount else tuple(texts) if is_text else ())
    many = ({f"x{number}": "x" for number in range(length)} for length in _lengths(vocabulary) if is_text)
    yield _Place(steps, (*many, {}))


def _amounts(texts: Sequence[str]) -> list[str]:
    return [*dict.fromkeys((*(text for text in texts if text[:1].isdecimal()), *_QUANTITIES))]


def _scalars(schema: JSONObject, kind: str, vocabulary: Vocabulary, texts: Sequence[str]) -> tuple[JSON, ...]:
    if schema.get("enum"):
        return tuple(schema["enum"])
    match kind:
        case "boolean":
            return (True, False)
        case "integer" | "number":
            return tuple(dict.fromkeys((0, 1, 2, *numbers_near(vocabulary.constants)[:_MOST_TEXTS])))
    if schema.get("format") == "int-or-string" or schema.get("x-kubernetes-int-or-string"):
        return (*texts, *dict.fromkeys((0, 1, 80, *numbers_near(vocabulary.constants)[:12])))
    return tuple(texts)


def _type(schema: JSONObject) -> str:
    types = schema.get("type")
    if isinstance(types, list):
        return next((each for each in types if each != "null"), "")
    return str(types or "")


def _elsewhere(plain: JSONObject, steps: Steps, value: JSON) -> Iterator[JSONObject]:
    """Yield the object with the value in the second container, and in the other lists of containers."""
    at = steps.index("containers")
    if len(steps) < at + 3:
        return
    yield put(put(plain, (*steps[: at + 1], 0, "name"), "first"), (*steps[: at + 1], 1, *steps[at + 2 :]), value)
    for other in _CONTAINERS:
        yield put(plain, (*steps[:at], other, *steps[at + 1 :]), value)
