"""Reads of the cluster in CEL: `resource.Get` and `resource.List`; namespaced policies name no namespace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyverno.compiler.migration.expressions.names import Names
from pyverno.compiler.migration.outcome import UnconvertibleError
from pyverno.compiler.migration.text import Cel, call, literal

__all__ = ["read_call"]

_OWN: Final = ("request.namespace", "object.metadata.namespace", "request.object.metadata.namespace")
"""Texts of the namespace of the object, which is that of the policy."""


def read_call(function: str, parts: tuple[Cel, ...], rest: Sequence[Cel], names: Names, path: str) -> Cel:
    """Return a call of `resource.Get` or `resource.List`; `parts` are apiVersion, plural and namespace.

    A namespaced policy in CEL reads its own namespace: one that names another, or none, is refused.

    >>> from pyverno.compiler.migration.expressions import names_of
    >>> names = names_of(None)
    >>> parts = literal("v1"), literal("pods"), literal("shop")
    >>> read_call("List", parts, (), names, "urlPath").text
    "resource.List('v1', 'pods', 'shop')"
    """
    if not names.home:
        return call(f"resource.{function}", *parts, *rest)
    api_version, plural, namespace = parts
    plain = namespace.text.replace(".?", ".").removesuffix(".orValue('')")
    if plain not in (literal(names.home).text, *_OWN):
        what = "objects outside of namespaces, or of all" if namespace.text == "''" else f"namespace {namespace.text}"
        reason = f"the rule reads {what}, and a namespaced policy in CEL reads its own namespace"
        raise UnconvertibleError("other-namespace", path, reason, "convert a ClusterPolicy for this namespace")
    return call(f"resource.{function}", api_version, plural, *rest)
