"""Batches: what one run of both commands evaluates, by seed."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from random import Random

from pyverno.kube.json import JSONObject
from tests.differential.generate import changes
from tests.differential.generate.celpolicies import admission_policy, cel_exception, validating_policy
from tests.differential.generate.clusterpolicies import cluster_policy, exception, validating_rule, values
from tests.differential.generate.draws import chance
from tests.differential.generate.expressions import expression
from tests.differential.generate.resources import KINDS, resource, resources, tree

__all__ = ["FAMILIES", "Batch", "batch_of", "family_of"]

_KNOWN = tuple(kind for kind in KINDS if kind != "Widget")
_CONTROLLERS = ("Pod", "Pod", "Deployment", "CronJob")


@dataclass(frozen=True, slots=True)
class Batch:
    """Policies and resources of one run; with queries, the first resource is their input."""

    seed: int
    family: str
    policies: tuple[JSONObject, ...]
    resources: tuple[JSONObject, ...]
    exceptions: tuple[JSONObject, ...] = ()
    values: JSONObject | None = None
    queries: tuple[str, ...] = ()


def family_of(seed: int) -> str:
    """Return the family of a seed: they take turns."""
    return tuple(FAMILIES)[seed % len(FAMILIES)]


def batch_of(seed: int, family: str | None = None) -> Batch:
    """Return the batch of a seed."""
    chosen = family or family_of(seed)
    return FAMILIES[chosen](Random(f"{seed}/{chosen}"), seed)  # noqa: S311 - a seed gives the same batch


def _names(prefix: str, count: int) -> list[str]:
    return [f"{prefix}{index:02}" for index in range(count)]


def _rules(random: Random, seed: int) -> Batch:
    """Validating rules about all kinds, with matches that choose, exceptions and values."""
    objects = resources(random, 40)
    policies, exceptions = [], []
    for name in _names("p", 24):
        sample = random.choice(objects)
        rules = [validating_rule(random, f"v{index}", sample) for index in range(random.randint(1, 4))]
        policies.append(cluster_policy(name, rules))
        if chance(random, 0.2):
            exceptions.append(exception(random, f"e-{name}", name, [rule["name"] for rule in rules], sample))
    given = values(random, _names("p", 24), [item["metadata"]["name"] for item in objects])
    return Batch(
        seed, "rules", tuple(policies), tuple(objects), tuple(exceptions), given if chance(random, 0.5) else None
    )


def _wide(random: Random, seed: int) -> Batch:
    """Validating rules that all objects of a kind meet: many verdicts about the languages."""
    kind = random.choice(("Pod", "Widget", "Widget", "Deployment"))
    objects = resources(random, 40, (kind,))
    policies = [
        cluster_policy(
            name,
            [validating_rule(random, f"v{index}", random.choice(objects), wide=True) for index in range(6)],
            **({"background": False} if chance(random, 0.1) else {}),
        )
        for name in _names("p", 24)
    ]
    return Batch(seed, "wide", tuple(policies), tuple(objects))


def _autogen(random: Random, seed: int) -> Batch:
    """Rules for pods that are also derived for their controllers."""
    objects = resources(random, 30, _CONTROLLERS)
    pods = [item for item in objects if item["kind"] == "Pod"] or [resource(random, "Pod", "r99")]
    policies = []
    for name in _names("p", 24):
        rules = [validating_rule(random, f"v{index}", random.choice(pods), wide=True) for index in range(2)]
        policy = cluster_policy(name, rules)
        del policy["metadata"]["annotations"]
        policies.append(policy)
    return Batch(seed, "autogen", tuple(policies), tuple(objects))


def _cel(random: Random, seed: int) -> Batch:
    """ValidatingPolicies with exceptions."""
    objects = resources(random, 20, random.choice((KINDS, _CONTROLLERS, ("Pod",), ("Widget",))))
    policies, exceptions = [], []
    for name in _names("p", 30):
        sample = random.choice(objects)
        policies.append(validating_policy(random, name, sample))
        if chance(random, 0.15):
            exceptions.append(cel_exception(random, f"e-{name}", "ValidatingPolicy", name, sample))
    return Batch(seed, "cel", tuple(policies), tuple(objects), tuple(exceptions))


def _admission(random: Random, seed: int) -> Batch:
    """ValidatingAdmissionPolicies with bindings."""
    objects = resources(random, 30, random.choice((_KNOWN, _CONTROLLERS, ("Pod",))))
    documents: list[JSONObject] = []
    for name in _names("p", 30):
        documents += admission_policy(random, name, random.choice(objects))
    return Batch(seed, "admission", tuple(documents), tuple(objects))


def _each_its_own(
    random: Random,
    seed: int,
    family: str,
    kinds: tuple[str, ...],
    write: Callable[[Random, str, JSONObject], list[JSONObject]],
    *,
    policies: int = 20,
) -> Batch:
    """Return policies each of which has objects of its own, so that no change meets another."""
    documents: list[JSONObject] = []
    objects: list[JSONObject] = []
    for name in _names("p", policies):
        kind = random.choice(kinds)
        first = resource(random, kind, f"{name}-0")
        documents += write(random, name, first)
        others = [first, *(resource(random, kind, f"{name}-{index}") for index in range(1, 6))]
        for other in others:
            own = deepcopy(other)
            own["metadata"].setdefault("labels", {})[changes.CASE] = name
            objects.append(own)
    return Batch(seed, family, tuple(documents), tuple(objects))


def _mutate(random: Random, seed: int) -> Batch:
    """Mutating rules."""
    return _each_its_own(random, seed, "mutate", KINDS, lambda *drawn: [changes.mutating_rule_policy(*drawn)])


def _generate(random: Random, seed: int) -> Batch:
    """Generating rules and GeneratingPolicies."""
    return _each_its_own(
        random,
        seed,
        "generate",
        _KNOWN,
        lambda draws, *drawn: [
            changes.generating_rule_policy(draws, *drawn)
            if chance(draws, 0.5)
            else changes.generating_policy(draws, *drawn)
        ],
    )


def _celmutate(random: Random, seed: int) -> Batch:
    """MutatingPolicies and MutatingAdmissionPolicies."""
    return _each_its_own(
        random,
        seed,
        "celmutate",
        ("Pod", "Deployment", "Service", "ConfigMap"),
        lambda draws, *drawn: changes.mutating_policy(draws, *drawn, admission=chance(draws, 0.4)),
        policies=6,
    )


def _queries(random: Random, seed: int) -> Batch:
    """JMESPath expressions about one document."""
    document = {"object": resource(random, random.choice(KINDS), "r0"), "extra": tree(random, 4)}
    queries = tuple(expression(random, "", document, depth=2) for _ in range(40))
    return Batch(seed, "queries", (), (document,), queries=queries)


FAMILIES: dict[str, Callable[[Random, int], Batch]] = {
    "rules": _rules,
    "wide": _wide,
    "autogen": _autogen,
    "cel": _cel,
    "admission": _admission,
    "mutate": _mutate,
    "generate": _generate,
    "celmutate": _celmutate,
    "queries": _queries,
}
