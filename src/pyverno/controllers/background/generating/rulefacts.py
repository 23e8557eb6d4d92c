"""Facts about generating rules that generated objects depend on, read from policies as written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

from pyverno.compiler.compile import Compiled
from pyverno.controllers.background.generating.downstreams import Downstream
from pyverno.kube.json import JSON
from pyverno.policy.cel.policies import GeneratingPolicy
from pyverno.policy.clusterpolicy import ClusterPolicy
from pyverno.policy.generate import Generate, GeneratePattern
from pyverno.value import dataclass

__all__ = ["RuleFacts", "facts_of"]


@dataclass(frozen=True, slots=True)
class RuleFacts:
    """A generating rule: its name ("" for a policy in CEL), and what happens to the objects it generates.

    `kinds` are the kinds that it generates as far as they are written (`apiVersion/kind`). `target` are the fields that
    state where its objects are; `copies_one` means that a source is one named object, `copies_list` that it is a list.
    """

    name: str
    synchronize: bool
    on_existing: bool
    orphans: bool
    copies_one: bool = False
    copies_list: bool = False
    kinds: tuple[str, ...] = ()
    target: JSON = None

    def goes_with_policy(self, downstream: Downstream) -> bool:
        """Return whether a generated object is deleted when the rule or its policy is.

        Kyverno: copies of one named object, and all copies that a GeneratingPolicy makes, stay.
        """
        if not self.synchronize or self.orphans:
            return False
        return not (downstream.origin.is_copy and (self.copies_one or not self.name))


def facts_of(compiled: Compiled | None) -> Mapping[str, RuleFacts]:
    """Return the generating rules of a policy by name; empty for any other policy."""
    return _facts(_PolicyIdentity(compiled.written if compiled is not None else None))


class _PolicyIdentity:
    """A policy that is equal to itself alone: comparing documents would cost as much as reading them."""

    __slots__ = ("policy",)

    def __init__(self, policy: object) -> None:
        self.policy = policy

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _PolicyIdentity) and other.policy is self.policy

    def __hash__(self) -> int:
        return id(self.policy)


@lru_cache(maxsize=512)
def _facts(written: _PolicyIdentity) -> Mapping[str, RuleFacts]:
    match written.policy:
        case ClusterPolicy() as policy:
            return {rule.name: rule for rule in _rules(policy)}
        case GeneratingPolicy() as policy:
            evaluation = policy.spec.evaluation
            facts = RuleFacts(
                "",
                synchronize=evaluation.synchronize,
                on_existing=evaluation.generate_existing,
                orphans=evaluation.orphan_downstream_on_policy_delete,
                copies_list=True,  # expressions list whatever they want
            )
            return {"": facts}
        case _:
            return {}


def _rules(policy: ClusterPolicy) -> Iterator[RuleFacts]:
    for rule in policy.spec.rules:
        generate = rule.action
        if not isinstance(generate, Generate):
            continue
        patterns = _patterns(generate)
        existing = generate.generate_existing
        yield RuleFacts(
            rule.name,
            synchronize=generate.synchronize,
            on_existing=policy.spec.generate_existing if existing is None else existing,
            orphans=generate.orphan_downstream_on_policy_delete,
            copies_one=any(pattern.clone.name for pattern in patterns),
            copies_list=any(pattern.clone_list.kinds for pattern in patterns),
            kinds=tuple(dict.fromkeys(kind for pattern in patterns for kind in _kinds(pattern))),
            target=[_target(pattern) for pattern in patterns],
        )


def _patterns(generate: Generate) -> tuple[GeneratePattern, ...]:
    if generate.foreach is not None:
        return tuple(each.pattern for each in generate.foreach)
    return (generate.pattern,)


def _kinds(pattern: GeneratePattern) -> Iterator[str]:
    if pattern.kind and "{{" not in pattern.kind + pattern.api_version:
        yield f"{pattern.api_version}/{pattern.kind}"
    yield from (text for text in pattern.clone_list.kinds or () if "{{" not in text)


def _target(pattern: GeneratePattern) -> JSON:
    lists = pattern.clone_list
    return [
        *(pattern.api_version, pattern.kind, pattern.namespace, pattern.name),
        *(pattern.clone.namespace, pattern.clone.name),
        *(lists.namespace, list(lists.kinds or ()), lists.selector),
    ]
