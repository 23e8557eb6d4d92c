"""What OpenAPI does not say about Kubernetes' own types: which fields are always written, and how Go names types.

The table is made by `scripts/build_go_types.py`. This module must never look at an object.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Final

import orjson

__all__ = ["GoField", "go_fields"]


@dataclass(frozen=True, slots=True)
class GoField:
    """One field of a Go struct: when it is left out of JSON, and the name of its type in messages of the decoder.

    `mark` is `zero` (left out when zero), `nil` (a pointer, left out when unset), `null` (the same, but written as
    null), `never` (always written), `struct` (always written, as `{}` at least) or `other` (a value type that writes
    its own zero). `embedded` names the struct that the field comes from where one is inlined into another.
    """

    mark: str
    type: str
    embedded: str = ""


_NONE: Final[Mapping[str, GoField]] = MappingProxyType({})


@cache
def _table() -> dict[str, dict[str, list[str]]]:
    import lzma
    import pkgutil

    packed = pkgutil.get_data("pyverno.kube", "data/go_types.json.xz")
    if packed is None:
        raise FileNotFoundError("go_types.json.xz")
    table: dict[str, dict[str, list[str]]] = orjson.loads(lzma.decompress(packed))
    return table


def go_fields(definition: str) -> Mapping[str, GoField]:
    """Return the fields of a type by their JSON names; empty for types that are not known.

    >>> go_fields("io.k8s.api.apps.v1.DeploymentSpec")["replicas"]
    GoField(mark='nil', type='int32', embedded='')
    """
    found = _table().get(definition)
    return {name: GoField(*entry) for name, entry in found.items()} if found else _NONE
