"""What two sides of a comparison talk about: kinds, names of fields, and constants, read from their documents.

Objects made of these reach the branches of a policy; random ones hardly ever do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from pyverno.engine.explain.samples import samples
from pyverno.errors import PyvernoError
from pyverno.kube.gvk import parse_kind_selector
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.kinds import KindInfo, KindTable
from pyverno.lang.pattern.anchors import parse_anchor
from pyverno.policy.kinds import KNOWN_KINDS
from pyverno.value import dataclass

__all__ = ["Material", "material_of"]

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TEXT: Final = re.compile(r"""'((?:[^'\\\n]|\\.)*)'|"((?:[^"\\\n]|\\.)*)"|`([^`\n]*)`""")
_NUMBER: Final = re.compile(r"(?<![\w.])-?\d{1,12}(?![\w.])")
_WORKLOADS: Final = ("DaemonSet", "Deployment", "Job", "ReplicaSet", "ReplicationController", "StatefulSet", "CronJob")
_OPERATORS: Final = re.compile(r"^\s*[!<>]|[|&]")
_LONGEST: Final = 200
_MOST_KINDS: Final = 40
_WHERE_KINDS: Final = ("matchConstraints", "match", "exclude", "targetMatchConstraints")


@dataclass(frozen=True, slots=True)
class Material:
    """Kinds that the sides match, names that they mention, and constants in the order of their first mention."""

    kinds: tuple[KindInfo, ...]
    names: frozenset[str]
    constants: tuple[JSON, ...]


def material_of(documents: Iterable[JSONObject], kinds: KindTable = KNOWN_KINDS) -> Material:
    """Return what policies of any kind talk about; patterns and conditions give values that satisfy and break them."""
    found_kinds: dict[KindInfo, None] = {}
    names: set[str] = set()
    constants: dict[tuple[type, str], JSON] = {}
    for document in documents:
        spec = document.get("spec")
        for block in _blocks(spec):
            found_kinds.update(dict.fromkeys(_kinds(block, kinds)))
        for value in _leaves(spec, names):
            for each in _constants(value):
                if not isinstance(each, str) or len(each) <= _LONGEST:
                    constants.setdefault((type(each), str(each)), each)
    if any(info.kind == "Pod" for info in found_kinds):
        found_kinds.update(dict.fromkeys(info for kind in _WORKLOADS for info in kinds.by_kind(kind)[:1]))
    return Material(tuple(found_kinds)[:_MOST_KINDS], frozenset(names), tuple(constants.values()))


def _blocks(value: JSON, *, is_inside: bool = False) -> Iterator[JSONObject]:
    """Yield the maps that name kinds or resources, below the fields that match requests."""
    if isinstance(value, dict):
        if is_inside and ("kinds" in value or "resources" in value):
            yield value
        for key, below in value.items():
            yield from _blocks(below, is_inside=is_inside or key in _WHERE_KINDS)
    elif isinstance(value, list):
        for below in value:
            yield from _blocks(below, is_inside=is_inside)


def _kinds(block: JSONObject, kinds: KindTable) -> Iterator[KindInfo]:
    for text in _texts(block.get("kinds")):
        try:
            yield from (info for info in kinds.select(parse_kind_selector(text)))
        except PyvernoError:
            continue  # the compiler reports it
    groups, versions = _texts(block.get("apiGroups")) or ["*"], _texts(block.get("apiVersions")) or ["*"]
    for plural in _texts(block.get("resources")):
        for info in kinds:
            if (
                plural.partition("/")[0] in ("*", info.plural)
                and (info.group in groups or "*" in groups)
                and (info.version in versions or "*" in versions)
            ):
                yield info


def _texts(value: JSON) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def _leaves(value: JSON, names: set[str]) -> Iterator[JSON]:
    """Yield every scalar; names of keys, and every word of a text, count as names of fields."""
    if isinstance(value, dict):
        for key, below in value.items():
            anchor = parse_anchor(key)
            names.add(anchor.key if anchor is not None else key)
            if any(each in key for each in "./*?"):
                yield key  # labels and annotations are matched by their keys
            yield from _leaves(below, names)
    elif isinstance(value, list):
        for below in value:
            yield from _leaves(below, names)
    else:
        if isinstance(value, str):
            names.update(_NAME.findall(value))
        yield value


def _constants(value: JSON) -> Iterator[JSON]:
    if not isinstance(value, str):
        if value is not None:
            yield value
        return
    if any(each in value for each in ("(", "{{", "==", "\n")):
        # an expression: its own constants
        for found in _TEXT.finditer(value):
            text = next(each for each in found.groups() if each is not None)
            yield text
            yield from samples(text)
        yield from (int(number) for number in _NUMBER.findall(value))
        return
    if not _OPERATORS.search(value):
        # Kyverno takes a value that is the text of its pattern for a match: true, and of no use to anybody
        yield value
    yield from samples(value)
