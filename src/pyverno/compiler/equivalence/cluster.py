"""Objects of a cluster that policies read: a few of each kind, in some namespaces, so that calls have answers.

Some namespaces hold several objects and some hold none. Names and namespaces that the policies write down are kept.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from typing import Final

from pyverno.compiler.equivalence.objects import ObjectMaker
from pyverno.compiler.equivalence.shrinking import Admit
from pyverno.compiler.equivalence.vocabulary import Vocabulary
from pyverno.kube.gvk import GVK, GVR
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.kinds import KindInfo, KindTable
from pyverno.policy.kinds import KNOWN_KINDS
from pyverno.value import dataclass

__all__ = ["ClusterRead", "cluster_objects", "cluster_reads"]

_PATH: Final = re.compile(
    r"/(?:api|apis/(?P<group>[a-z0-9.-]+))/(?P<version>v[a-z0-9]+)"
    r"(?:/namespaces/(?P<namespace>\{\{[^}]*\}\}|[^/?{]+))?/(?P<plural>[a-z]+)(?:/(?P<name>[^/?]+))?"
)
_CALL: Final = re.compile(
    r"resource\.(?:Get|List)\(\s*'(?P<version>[^']+)'\s*,\s*'(?P<plural>[^']+)'\s*,\s*(?P<namespace>[^,()]+(?:\([^()]*\))?)"
    r"(?:,\s*(?P<name>[^()]+))?\)"
)
_MANY: Final = {"prod": 3, "team-a": 1, "kube-system": 2}
"""How many objects of a kind the namespaces of generated objects hold, beside those of policies; others hold none."""

_MOST: Final = 12
_SEED: Final = 99


@dataclass(frozen=True, slots=True)
class ClusterRead:
    """A kind of objects that a policy reads; name and namespace are "" where they depend on the request."""

    kind: KindInfo
    namespace: str = ""
    name: str = ""


def cluster_reads(documents: Iterable[JSONObject], kinds: KindTable = KNOWN_KINDS) -> tuple[ClusterRead, ...]:
    """Return the reads of policies from a cluster: by context, by expressions, as sources and as targets.

    >>> call = {"apiCall": {"urlPath": "/api/v1/namespaces/n/secrets"}}
    >>> [(each.kind.kind, each.namespace) for each in cluster_reads([{"spec": {"context": [call]}}])]
    [('Secret', 'n')]
    """
    found = dict.fromkeys(each for document in documents for each in _reads(document.get("spec"), kinds))
    return tuple(found)[:_MOST]


def cluster_objects(
    reads: Collection[ClusterRead], vocabulary: Vocabulary, admit: Admit, given: Iterable[JSONObject] = ()
) -> list[JSONObject]:
    """Return admitted objects of the kinds that are read, given ones first, the same ones for the same policies."""
    maker = ObjectMaker(vocabulary, _SEED)
    many_of = {**_MANY, **dict.fromkeys(vocabulary.homes, 2)}
    kinds = {(each.kind.api_version, each.kind.kind) for each in reads}
    found: dict[tuple[str, str, str], JSONObject] = {}
    for body in given:
        if (body.get("apiVersion"), body.get("kind")) in kinds and (stored := admit(body)) is not None:
            metadata = stored["metadata"]
            key = (stored["kind"], metadata.get("namespace", ""), metadata.get("name", ""))
            found.setdefault(key, stored)
    for read in reads:
        places = [(read.namespace, 3)] if read.namespace else [*many_of.items()]
        for namespace, many in places if read.kind.namespaced else [("", 3)]:
            for number in range(1 if read.name else many):
                made = maker.make(read.kind)
                if made is None:
                    continue
                metadata = {**made["metadata"], "name": read.name or f"{read.kind.singular}-{number}"}
                if namespace:
                    metadata["namespace"] = namespace
                if read.kind.kind == "ConfigMap":
                    made = {**made, "data": _data(vocabulary, len(found))}
                stored = admit({**made, "metadata": metadata})
                if stored is not None:
                    found.setdefault((read.kind.kind, namespace, metadata["name"]), stored)
    return [*found.values()]


def _data(vocabulary: Vocabulary, turn: int) -> JSONObject:
    """Return the entries that the policies mention, with a constant of theirs or a plain text in turn."""
    values = ["x", *(each for each in vocabulary.constants if isinstance(each, str))]
    return {key: values[(turn + number) % len(values)] for number, key in enumerate(vocabulary.keys.get("data", ()))}


def _reads(value: JSON, kinds: KindTable) -> Iterator[ClusterRead]:
    if isinstance(value, list):
        for below in value:
            yield from _reads(below, kinds)
    elif isinstance(value, str):
        yield from _of_text(value, kinds)
    elif isinstance(value, dict):
        reference = value.get("configMap")
        if isinstance(reference, dict) and "name" in reference:
            yield from _of_kind("v1", "ConfigMap", reference, kinds)
        for each in value.get("targets") or () if isinstance(value.get("targets"), list) else ():
            if isinstance(each, dict):
                yield from _of_kind(each.get("apiVersion"), each.get("kind"), each, kinds)
        if isinstance(value.get("clone"), dict):
            yield from _of_kind(value.get("apiVersion"), value.get("kind"), value["clone"], kinds)
        listed = value.get("cloneList")
        if isinstance(listed, dict):
            for each in listed.get("kinds") or ():
                version, _, kind = str(each).rpartition("/")
                yield from _of_kind(version, kind, {"namespace": listed.get("namespace")}, kinds)
        for below in value.values():
            yield from _reads(below, kinds)


def _of_kind(version: JSON, kind: JSON, reference: JSONObject, kinds: KindTable) -> Iterator[ClusterRead]:
    group, _, bare = str(version or "").rpartition("/")
    info = kinds.find(GVK(group, bare, str(kind or "")))
    if info is not None:
        yield ClusterRead(info, _literal(reference.get("namespace")), _literal(reference.get("name")))


def _of_text(text: str, kinds: KindTable) -> Iterator[ClusterRead]:
    for found in _PATH.finditer(text):
        info = kinds.by_resource(GVR(found["group"] or "", found["version"], found["plural"]))
        if info is not None:
            yield ClusterRead(info, _literal(found["namespace"]), _literal(found["name"]))
    for found in _CALL.finditer(text):
        group, _, version = found["version"].rpartition("/")
        info = kinds.by_resource(GVR(group, version, found["plural"]))
        if info is not None:
            yield ClusterRead(info, _quoted(found["namespace"]), _quoted(found["name"]))


def _quoted(text: str | None) -> str:
    """Return the text of a CEL literal; "" for any other expression."""
    stripped = (text or "").strip()
    return stripped[1:-1] if len(stripped) > 1 and stripped[0] == stripped[-1] == "'" else ""


def _literal(text: JSON) -> str:
    return text if isinstance(text, str) and not any(each in text for each in "{*?") else ""
