"""Every overload of every CEL library, and values of every CEL type to call them with."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

from pyverno.compiler.cel.environment import environment_of_kind
from pyverno.kube.quantity import parse_quantity
from pyverno.kube.semver import parse_version
from pyverno.lang.cel.declarations import Overload
from pyverno.lang.cel.host import Decision
from pyverno.lang.cel.libraries.addresses import NETWORK, parse_cidr, parse_ip
from pyverno.lang.cel.libraries.authorizer import Answer, Authorizer, GroupCheck, PathCheck, ResourceCheck
from pyverno.lang.cel.libraries.formats import named
from pyverno.lang.cel.libraries.jwt import KeySet
from pyverno.lang.cel.libraries.kubernetes.urls import url
from pyverno.lang.cel.libraries.kyverno.hostcalls import GVR, LibraryContext
from pyverno.lang.cel.libraries.kyverno.images import parse_image
from pyverno.lang.cel.libraries.strings import STRINGS
from pyverno.lang.cel.presets import (
    STANDARD,
    authz_environment,
    kubernetes_environment,
)
from pyverno.lang.cel.scalars import Duration, Timestamp, TypeValue, Uint
from pyverno.lang.cel.types import Type
from pyverno.lang.cel.values import NONE, Optional, StructValue, TypedMap, new_map
from pyverno.policy.kinds import Family, kinds_of

__all__ = ["VALUES", "FixedHost", "fitting", "overloads"]


class FixedHost:
    """A Host with a fixed clock, constant random bits, and no resolvable names."""

    def now(self) -> int:
        """Return the same moment."""
        return 1_700_000_000 * 10**9

    def random_bits(self, bits: int) -> int:
        """Return zero."""
        return 0

    def lookup_host(self, name: str) -> tuple[str, ...]:
        """Return no address."""
        return ()


@cache
def overloads() -> tuple[tuple[str, Overload], ...]:
    """Return name and overload of every function that any environment or version of a library declares."""
    kyverno = [environment_of_kind(kind) for kind in sorted(kinds_of(Family.CEL))]
    environments = [STANDARD, kubernetes_environment(mutation=True), *kyverno]
    environments += [authz_environment("Envoy"), authz_environment("HTTP")]
    found: dict[tuple[str, str, int], tuple[str, Overload]] = {}
    for environment in environments:
        for name, several in environment.names.functions.items():
            for overload in several:
                found.setdefault((name, str(overload.signature), id(overload.apply)), (name, overload))
    for library in (STRINGS, NETWORK):
        for declaration in library.declarations:
            for overload in declaration.overloads:
                key = (declaration.name, str(overload.signature), id(overload.apply))
                found.setdefault(key, (declaration.name, overload))
    return tuple(found.values())


def _deep() -> list[Any]:
    value: list[Any] = []
    for _ in range(400):
        value = [value]
    return value


VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2**63 - 1, -(2**63), 10**30, Uint(0), Uint(2**64 - 1),
    0.0, 1.5, -0.0, math.inf, -math.inf, math.nan, 1e308,
    "", "a", "é\ud800", "%s%d%.9f%", "(", "[a-z]+", "\\1", "1.2.3", "10.0.0.0/8", "1e999999", "2024-01-31T12:00:00Z",
    "1h", "Europe/Vienna", "+99999:99", "../x", "{\"a\": 1e999}", "- [a, b", "a.b.c",
    b"", b"\xff\x1f\x8b", [], [None], [1, "a", None], [[1], [[2]]], ["a", "b"], [Optional(1), NONE], [math.nan, 1.0],
    [{"a": None}], {}, {"a": None}, {"a": {"b": [1]}}, {1: 2}, new_map([(True, 1)]), TypedMap(), _deep(),
    Timestamp(0), Timestamp(253_402_300_799 * 10**9), Timestamp(-62_135_596_800 * 10**9), Duration(0),
    Duration(2**63 - 1), Optional(None), Optional({"a": 1}), NONE, TypeValue("int"),
    StructValue("x.Y", {"a": 1, "status": None}),
    parse_quantity("1Gi"), parse_quantity("1e9999"), parse_version("1.2.3"), parse_ip("::1"), parse_cidr("10.0.0.0/8"),
    url("https://x/?a=b"), parse_image("nginx"), named("uri").value, GVR("a", "v1", "b"), LibraryContext("json.Json"),
    Authorizer(), ResourceCheck(Authorizer(), {}), PathCheck(Authorizer(), "/a"), GroupCheck(Authorizer(), "apps"),
    Answer(Decision(allowed=True)), KeySet({"keys": [{"kty": "oct", "k": 1}]}), object(),
)  # fmt: skip
"""Values of every type, ordinary ones and odd ones; the last is of a kind that CEL does not know."""

_OWN: dict[str, Any] = {
    "null": None, "bool": True, "int": 1, "uint": Uint(1), "double": 1.5, "string": "a", "bytes": b"a", "list": [1],
    "map": {"a": 1}, "timestamp": Timestamp(0), "duration": Duration(1), "type": TypeValue("int"),
}  # fmt: skip


def fitting(declared: Type) -> Any:
    """Return an ordinary value of a declared type."""
    if declared.kind in _OWN:
        return _OWN[declared.kind]
    if declared.name == "optional_type":
        return Optional(1)
    if declared.kind == "struct":
        return StructValue(declared.name, {"header": {"a": ["b"]}, "query": {}})
    own = (value for value in VALUES if getattr(value, "cel_type", "") == declared.name)
    known = {"kubernetes.Quantity": parse_quantity("1"), "kubernetes.Semver": parse_version("1.2.3")}
    if declared.name in known:
        return known[declared.name]
    if declared.kind == "opaque":
        fallback = LibraryContext(declared.name) if "Context" in declared.name else StructValue(declared.name, {})
        return next(own, fallback)
    return {"a": 1}
