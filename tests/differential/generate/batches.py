"""Batches: the inputs of one run of both commands, by seed."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from random import Random

from pyverno.kube.json import JSONObject
from tests.differential.generate import changes
from tests.differential.generate.celpolicies import admission_policy, cel_exception, validating_policy
from tests.differential.generate.clusterpolicies import cluster_policy, exception, validating_rule, values
from tests.differential.generate.deletions import cleanup_policy, deleting_policy
from tests.differential.generate.draws import chance
from tests.differential.generate.expressions import expression
from tests.differential.generate.images import image_policy
from tests.differential.generate.parameters import parameterized_policy, parameters
from tests.differential.generate.resources import KINDS, resource, resources, tree
from tests.differential.generate.users import user, user_policy

__all__ = ["FAMILIES", "Batch", "batch_of", "family_of"]

_KNOWN = tuple(kind for kind in KINDS if kind != "Widget")
_CONTROLLERS = ("Pod", "Pod", "Deployment", "CronJob")


@dataclass(frozen=True, slots=True)
class Batch:
    """Policies and resources of one run; with queries, the first resource is their input.

    `user` is the file with the user of all requests, `parameters` are the objects that bindings refer to.
    """

    seed: int
    family: str
    policies: tuple[JSONObject, ...]
    resources: tuple[JSONObject, ...]
    exceptions: tuple[JSONObject, ...] = ()
    values: JSONObject | None = None
    queries: tuple[str, ...] = ()
    user: JSONObject | None = None
    parameters: tuple[JSONObject, ...] = ()


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
    given = values(random, (), ()) if chance(random, 0.3) else None
    return Batch(seed, "cel", tuple(policies), tuple(objects), tuple(exceptions), given)


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
    """Generating rules and GeneratingPolicies, these with exceptions."""
    drawn = _each_its_own(
        random,
        seed,
        "generate",
        _KNOWN,
        lambda draws, *given: [
            changes.generating_rule_policy(draws, *given)
            if chance(draws, 0.5)
            else changes.generating_policy(draws, *given)
        ],
    )
    return _with_exceptions(random, drawn, "GeneratingPolicy")


def _celmutate(random: Random, seed: int) -> Batch:
    """MutatingPolicies with exceptions, and MutatingAdmissionPolicies."""
    drawn = _each_its_own(
        random,
        seed,
        "celmutate",
        ("Pod", "Deployment", "Service", "ConfigMap"),
        lambda draws, *given: changes.mutating_policy(draws, *given, admission=chance(draws, 0.4)),
        policies=6,
    )
    return _with_exceptions(random, drawn, "MutatingPolicy")


def _with_exceptions(random: Random, batch: Batch, kind: str) -> Batch:
    """Return a batch with exceptions for some of its policies of a kind."""
    exceptions = []
    for policy in batch.policies:
        name = policy["metadata"]["name"]
        if policy["kind"] == kind and chance(random, 0.25):
            sample = next(item for item in batch.resources if item["metadata"]["name"] == f"{name}-0")
            exceptions.append(cel_exception(random, f"e-{name}", kind, name, sample))
    return replace(batch, exceptions=tuple(exceptions))


def _users(random: Random, seed: int) -> Batch:
    """Policies about the user and the request."""
    objects = resources(random, 12, ("Pod", "ConfigMap", "Namespace"))
    given = user(random)
    policies = [user_policy(random, name, given, random.choice(objects)) for name in _names("p", 40)]
    return Batch(seed, "users", tuple(policies), tuple(objects), user=given)


def _parameters(random: Random, seed: int) -> Batch:
    """ValidatingAdmissionPolicies with parameters."""
    objects, given = resources(random, 12, ("Pod", "Service", "ConfigMap")), parameters(random)
    documents: list[JSONObject] = []
    for name in _names("p", 30):
        documents += parameterized_policy(random, name, random.choice(objects), given)
    return Batch(seed, "parameters", tuple(documents), tuple(objects), parameters=tuple(given))


def _deletions(random: Random, seed: int) -> Batch:
    """DeletingPolicies with exceptions, and cleanup policies."""
    objects = resources(random, 20, random.choice((_KNOWN, ("Pod",), ("ConfigMap", "Namespace"))))
    policies, exceptions = [], []
    for name in _names("p", 30):
        sample = random.choice(objects)
        if chance(random, 0.5):
            policies.append(cleanup_policy(random, name, sample))
            continue
        policies.append(deleting_policy(random, name, sample))
        if chance(random, 0.2):
            exceptions.append(cel_exception(random, f"e-{name}", policies[-1]["kind"], name, sample))
    return Batch(seed, "deletions", tuple(policies), tuple(objects), tuple(exceptions))


def _images(random: Random, seed: int) -> Batch:
    """ClusterPolicies about references of images."""
    objects = resources(random, 20, random.choice((_CONTROLLERS, ("Pod",))))
    policies = [image_policy(random, name, random.choice(objects)) for name in _names("p", 24)]
    return Batch(seed, "images", tuple(policies), tuple(objects))


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
    "users": _users,
    "parameters": _parameters,
    "deletions": _deletions,
    "images": _images,
    "queries": _queries,
}
