"""Structured merge: a configuration laid over an object, for server-side apply and for ApplyConfiguration alike.

Maps merge key by key, lists with keys by their keys, sets by value; everything else is replaced. Nothing is removed: a
null empties scalars and atomic values only. Follows structured-merge-diff (typed/merge.go). Values are never changed;
results share structure with them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from pyverno.errors import PatchError
from pyverno.kube.apply.schematree import ANYTHING, OPAQUE, ListType, SchemaTree
from pyverno.kube.apply.typedcheck import problems
from pyverno.kube.json import JSON, JSONObject

__all__ = ["apply_configuration", "atomic_paths", "merge"]


def apply_configuration(live: JSONObject, config: JSONObject, type: SchemaTree, *, refuses_atomics: bool) -> JSONObject:
    """Lay the configuration of a mutating policy over an object of a type, without ownership of fields.

    `refuses_atomics`: a configuration that sets an atomic list or map is an error, as for the API server, since the
    parts that it leaves out would be lost. Raises PatchError, also for values that do not fit the type.
    """
    try:
        wrong = problems(config, type)
        if wrong:
            raise PatchError(f"failed to convert patch object to typed object: {wrong}")
        atomics = ", ".join(atomic_paths(config, type)) if refuses_atomics else ""
        if atomics:
            raise PatchError(f"invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {atomics}")
        try:
            merged: JSONObject = merge(live, config, type)
        except PatchError as error:
            raise PatchError(f"failed to convert original object to typed object: {error.message}") from None
    except RecursionError:
        raise PatchError("the configuration or the object is nested too deeply") from None
    return merged


def atomic_paths(config: JSON, type: SchemaTree, path: str = "") -> Iterator[str]:
    """Yield the paths of atomic lists and maps in a configuration: `.spec.selector`.

    Follows apiserver's mutating/patch/smd.go: entries of maps are not searched, unless their type is unknown.
    """
    if type is OPAQUE:
        return
    if isinstance(config, dict) and type.map is not None:
        if type.map.is_atomic:
            yield path
        for name, item in config.items():
            child = type.map.field(name) or type.map.element
            if child is ANYTHING or type.map.field(name) is not None:
                yield from atomic_paths(item, child or ANYTHING, f"{path}.{name}")
    elif isinstance(config, list) and type.list is not None:
        if type.list.is_atomic:
            yield path
        for index, item in enumerate(config):
            yield from atomic_paths(item, type.list.element, f"{path}[{index}]")


def merge(live: JSON, config: JSON, type: SchemaTree) -> JSON:
    """Lay a configuration over a value: its leaves replace, everything else stays, lists keep the order of both.

    >>> merge({"a": {"b": 1}, "c": [1]}, {"a": {"d": 2}, "c": [2]}, ANYTHING)
    {'a': {'b': 1, 'd': 2}, 'c': [2]}
    """
    shape = type.shape(config if config is not None else live)
    if shape == "map" and type.map is not None and not type.map.is_atomic:
        old = live if isinstance(live, dict) else {}
        new = config if isinstance(config, dict) else {}
        if not old and not new:
            return config
        merged = dict(old)
        for name, value in new.items():
            merged[name] = merge(old[name], value, type.map.child(name) or ANYTHING) if name in old else value
        return merged
    if shape == "list" and type.list is not None and not type.list.is_atomic:
        before = live if isinstance(live, list) else []
        after = config if isinstance(config, list) else []
        return _merged_items(before, after, type.list) if before or after else config
    return config


def _merged_items(live: list[JSON], config: list[JSON], form: ListType) -> list[JSON]:
    """Merge two lists; shared items take the order of the configuration, others keep their positions.

    An item that the live list holds twice is replaced, since either of the two may be meant.
    """
    before = [form.step(item) for item in live]
    after = [form.step(item) for item in config]
    count = Counter(before)
    old = {step: item for step, item in zip(before, live, strict=True) if count[step] == 1}
    new = dict(zip(after, config, strict=True))
    shared = [step for step in after if step in count]
    result: list[JSON] = []
    done: set[str] = set()
    waiting = iter(after)

    def take(until: str | None) -> Iterator[JSON]:
        """Give merged items of the configuration up to and with one of them, or all."""
        for step in waiting:
            done.add(step)
            yield merge(old[step], new[step], form.element) if step in old else new[step]
            if step == until:
                return

    turn = 0
    for step, item in zip(before, live, strict=True):
        if step not in new:
            result.append(item)
        elif step not in done and step == shared[turn]:
            result.extend(take(step))
            while turn < len(shared) and shared[turn] in done:
                turn += 1
    result.extend(take(None))
    return result
