"""Lowering of match and exclude blocks: written filters become compiled ones.

Shared by rules, exceptions and cleanup policies.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from pyverno.engine.match import Filter, Matcher, Subject
from pyverno.errors import ValueSyntaxError
from pyverno.kube.gvk import parse_kind_selector
from pyverno.kube.json import JSONObject
from pyverno.kube.wildcard import compile_wildcard
from pyverno.policy.match import MatchBlocks, ResourceFilter
from pyverno.policy.subresources import EPHEMERAL_CONTAINERS, POD_SUBRESOURCES

if TYPE_CHECKING:
    from pyverno.kube.selector import Labels, LabelTest

__all__ = ["lower_filter", "lower_matcher"]


def lower_filter(
    block: ResourceFilter, *, for_rule: bool = True, pod_subresources: frozenset[str] = POD_SUBRESOURCES
) -> Filter:
    """Compile one block; `for_rule` is False for exceptions and cleanup policies, which differ in details.

    What takes away (exclude, exceptions) covers all subresources that carry a Pod: only a rule says which it judges.
    """
    resources, user = block.resources, block.user_info
    names = (*((resources.name,) if resources.name else ()), *resources.names)
    name_tests = tuple(compile_wildcard(name) for name in names)
    if resources.name and resources.names:
        # COMPAT: name and names together must both fit; validation refuses the pair
        one, many = name_tests[0], name_tests[1:]
        name_tests = (lambda text: one(text) and any(test(text) for test in many),)
    return Filter(
        kinds=tuple(parse_kind_selector(kind) for kind in resources.kinds),
        names=name_tests,
        namespaces=tuple(compile_wildcard(namespace) for namespace in resources.namespaces),
        annotations=tuple(resources.annotations.items()),
        selector=_selector(resources.selector),
        namespace_selector=_selector(resources.namespace_selector),
        operations=_set_of(operation.value for operation in resources.operations),
        subjects=tuple(Subject(subject.kind, subject.name, subject.namespace) for subject in user.subjects),
        roles=_set_of(user.roles),
        cluster_roles=_set_of(user.cluster_roles),
        ignores_namespace_selector_on_namespaces=not for_rule,
        pod_subresources=pod_subresources,
    )


_NONE: Final[frozenset[str]] = frozenset()


def _set_of(texts: Iterable[str]) -> frozenset[str]:
    """Return a set; all empty ones are the same, because most blocks have three of them."""
    return frozenset(texts) or _NONE


def _selector(selector: JSONObject | None) -> LabelTest | None:
    """Compile a selector; an invalid one raises when it is evaluated, also one that its wildcards make invalid.

    Validation reports the error, so this concerns only policies that run in spite of their errors.
    """
    if selector is None:
        return None
    # imported here, because few policies select by labels
    from pyverno.kube.selector import compile_selector

    try:
        return compile_selector(selector, wildcards=True)
    except ValueSyntaxError as error:
        message = error.message

    def refuse(_labels: Labels) -> bool:
        raise ValueSyntaxError(message)

    return refuse


def lower_matcher(
    match: MatchBlocks,
    exclude: MatchBlocks | None,
    *,
    policy_namespace: str = "",
    for_rule: bool = True,
    pod_subresources: frozenset[str] = EPHEMERAL_CONTAINERS,
) -> Matcher:
    """Compile match and exclude; a legacy flat block is an `all` of one.

    `pod_subresources` are those of which a match of Pods takes requests too (`pod_subresources_of` a rule).
    """

    def lowered(
        blocks: tuple[ResourceFilter, ...], subresources: frozenset[str] = pod_subresources
    ) -> tuple[Filter, ...]:
        return tuple(lower_filter(block, for_rule=for_rule, pod_subresources=subresources) for block in blocks)

    flat = () if match.flat is None else (match.flat,)
    exclude_any: tuple[ResourceFilter, ...] = ()
    exclude_all: tuple[ResourceFilter, ...] = ()
    if exclude is not None:
        exclude_any = exclude.any or (() if exclude.all or exclude.flat is None else (exclude.flat,))
        exclude_all = () if exclude.any else exclude.all
    return Matcher(
        any_of=lowered(match.any),
        all_of=() if match.any else lowered(match.all or flat),
        exclude_any=lowered(exclude_any, pod_subresources and POD_SUBRESOURCES),
        exclude_all=lowered(exclude_all, pod_subresources and POD_SUBRESOURCES),
        policy_namespace=policy_namespace,
    )
