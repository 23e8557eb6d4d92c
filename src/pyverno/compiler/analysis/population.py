"""The objects of an analysis: given ones, and generated ones steered by each policy in turn, all admitted.

Every policy has objects of its own: objects steered by many policies at once would reach few branches of each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import cycle, product
from typing import Final

from pyverno.compiler.analysis.sampling import MOST_VERDICTS
from pyverno.compiler.equivalence.objects import ObjectMaker
from pyverno.compiler.equivalence.shrinking import Admit, without_parts
from pyverno.compiler.equivalence.supply import ObjectSupply
from pyverno.compiler.equivalence.vocabulary import Vocabulary, vocabulary_of
from pyverno.kube.json import JSON, JSONObject, deep_copy, encode
from pyverno.value import replace

__all__ = ["Population", "make_population"]

_COPIES: Final = frozenset({"DaemonSet", "Job", "ReplicaSet", "ReplicationController", "StatefulSet"})
"""Workloads that add nothing to Deployments, because rules for Pods judge the templates of all."""

_NAMING: Final = frozenset({"name", "names", "namespaces", "resourceNames", "values"})

_LEAST: Final = 24
_MOST: Final = 600
_MERGES: Final = 12
_TAKEN_FROM: Final = 6
_VARIATIONS: Final = 60
_RENAMED: Final = 4
_TEXTS: Final = 10


class Population:
    """Objects by number, and variations of them; the first `given` of them were not generated."""

    def __init__(self, objects: Sequence[JSONObject], maker: ObjectMaker, admit: Admit, given: int = 0) -> None:
        """Take admitted objects, the maker of variations, and the admission of variations."""
        self.objects = tuple(objects)
        self.given = given
        self.admit = admit
        self._maker = maker

    def variations(self, starts: Sequence[JSONObject], donors: Sequence[JSONObject]) -> Iterator[JSONObject]:
        """Yield admitted objects between some objects and others of their kind.

        They are merged both ways, parts are taken from the others, and all of them are varied.
        """
        pairs = [(start, donor) for start in starts[:_MERGES] for donor in donors[:_MERGES] if _is_alike(start, donor)]
        made: list[JSONObject] = []
        for start, donor in pairs:
            for one, other in ((start, donor), (donor, start)):
                made.append(_merge(one, other))
                yield from self._admitted(made[-1])
        for donor in [donor for donor in donors if any(_is_alike(start, donor) for start in starts)][:_TAKEN_FROM]:
            made.append(donor)
            for smaller in without_parts(donor):
                yield from self._admitted(smaller)
        for number in range(_VARIATIONS if made else 0):
            yield from self._admitted(self._maker.vary(made[(number * 7919) % len(made)]))

    def renamed(self, document: JSONObject, bodies: Sequence[JSONObject]) -> Iterator[JSONObject]:
        """Yield objects under the names, in the namespaces and with the labels that a policy or exception mentions."""
        texts = [*dict.fromkeys(_selected_names(document.get("spec")))][:_TEXTS]
        labels = _selected_labels(document.get("spec"))
        by_kind: dict[str, list[JSONObject]] = {}
        for body in bodies:
            by_kind.setdefault(str(body.get("kind")), []).append(body)
        for body in [body for of_kind in by_kind.values() for body in of_kind[:_RENAMED]]:
            metadata = body.get("metadata") or {}
            for name, namespace in product((metadata.get("name"), *texts), (metadata.get("namespace"), *texts)):
                own = {**metadata, "name": name, **({"namespace": namespace} if metadata.get("namespace") else {})}
                if labels:
                    own["labels"] = {**(metadata.get("labels") or {}), **labels}
                yield from self._admitted({**body, "metadata": own})

    def _admitted(self, body: JSONObject) -> Iterator[JSONObject]:
        stored = self.admit(body)
        if stored is not None:
            yield stored


def make_population(
    documents: Sequence[JSONObject],
    given: Iterable[JSONObject],
    admit: Admit,
    *,
    count: int,
    seed: int,
    definitions: Sequence[JSONObject] = (),
    watched: Callable[[Iterable[JSONObject]], Iterable[JSONObject]] = iter,
) -> Population:
    """Return the given objects, and about `count` generated ones; kinds without a schema come as given.

    `definitions` are those of custom kinds; `watched` passes the policies on, and may show how many there were. Each
    policy has an equal share of the objects, within bounds.
    """
    share = min(max(count // max(len(documents), 1), min(_LEAST, count)), _MOST)
    share = max(min(share, MOST_VERDICTS // max(len(documents) ** 2, 1)), min(1, count))
    found: dict[str, JSONObject] = {}
    for body in given:
        stored = admit(body) or body
        found.setdefault(encode(stored), stored)
    known = len(found)
    for number, document in enumerate(watched(documents)):
        vocabulary = _without_copies(_with_policies(document, documents, definitions))
        maker = ObjectMaker(vocabulary, seed + number)
        for body in ObjectSupply(maker, vocabulary, (), share):
            admitted = admit(body)
            if admitted is not None:
                found.setdefault(encode(admitted), admitted)
    return Population([*found.values()], ObjectMaker(vocabulary_of(documents, definitions), seed), admit, known)


def _with_policies(
    document: JSONObject, documents: Sequence[JSONObject], definitions: Sequence[JSONObject]
) -> Vocabulary:
    """Return the vocabulary of a policy; that of an exception includes its policies."""
    spec = document.get("spec") or {}
    names = {str(each.get("policyName") or each.get("name")) for each in _references(spec)}
    named = [each for each in documents if (each.get("metadata") or {}).get("name") in names]
    return vocabulary_of([document, *named], definitions)


def _references(spec: JSONObject) -> Iterator[JSONObject]:
    for field in ("exceptions", "policyRefs"):
        listed = spec.get(field)
        yield from (each for each in listed if isinstance(each, dict)) if isinstance(listed, list) else ()


def _without_copies(vocabulary: Vocabulary) -> Vocabulary:
    """Return the vocabulary with few of the workloads whose templates the rules for Pods also judge."""
    if all(info.kind != "Pod" for info in vocabulary.kinds):
        return vocabulary
    return replace(vocabulary, kinds=tuple(info for info in vocabulary.kinds if info.kind not in _COPIES))


def _selected_names(value: JSON) -> Iterator[str]:
    """Yield texts that names and namespaces of match blocks fit; wildcards become letters."""
    for key, below in value.items() if isinstance(value, dict) else ():
        texts = below if isinstance(below, list) else [below]
        if key in _NAMING:
            yield from (each.replace("*", "x").replace("?", "x") for each in texts if isinstance(each, str))
        yield from _selected_names(below)
    for each in value if isinstance(value, list) else ():
        yield from _selected_names(each)


def _selected_labels(value: JSON) -> JSONObject:
    """Return all labels that selectors require."""
    if isinstance(value, dict):
        own = value.get("matchLabels")
        found = dict(own) if isinstance(own, dict) else {}
        for below in value.values():
            found.update(_selected_labels(below))
        return found
    if isinstance(value, list):
        return {key: text for each in value for key, text in _selected_labels(each).items()}
    return {}


def _is_alike(one: JSONObject, other: JSONObject) -> bool:
    return all(one.get(key) == other.get(key) for key in ("apiVersion", "kind"))


def _merge(below: JSON, above: JSON) -> JSON:
    """Return one value laid over another: maps by key; elements of a list over each element, which keeps its name.

    >>> _merge({"a": 1, "l": [{"name": "x"}, {"name": "y"}]}, {"l": [{"name": "z", "b": 2}]})
    {'a': 1, 'l': [{'name': 'x', 'b': 2}, {'name': 'y', 'b': 2}]}
    """
    if isinstance(below, dict) and isinstance(above, dict):
        return {**below, **{key: _merge(below.get(key), value) for key, value in above.items()}}
    if isinstance(below, list) and isinstance(above, list) and all(isinstance(each, dict) for each in (*below, *above)):
        pairs = zip(below, cycle(above), strict=False) if above else ((each, {}) for each in below)
        merged = [{**_merge(one, other), **{key: one[key] for key in ("name",) if key in one}} for one, other in pairs]
        return [*merged, *(() if below else above)]
    return deep_copy(below if above is None else above)
