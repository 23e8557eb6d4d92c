"""The existing objects that a rule may match, listed kind by kind; the rule itself decides which of them it matches."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Final

from pyverno.cluster.client import Client
from pyverno.engine.cel.constraints import ConstraintMatcher
from pyverno.engine.match import Matcher
from pyverno.engine.rule import RequestMatcher
from pyverno.errors import HostError, PyvernoError
from pyverno.kube.gvk import KindSelector
from pyverno.kube.json import JSONObject
from pyverno.kube.kinds import KindInfo, KindTable
from pyverno.kube.status import StatusError
from pyverno.value import dataclass

__all__ = ["Subject", "list_subjects", "resources_of"]

_NOT_LISTABLE: Final = (404, 405)


@dataclass(frozen=True, slots=True)
class Subject:
    """An existing object, its kind, and the subresource through which a rule changes it ("" = the object itself)."""

    document: JSONObject
    kind: KindInfo
    subresource: str = ""


def resources_of(matcher: RequestMatcher, kinds: KindTable) -> Iterator[tuple[KindInfo, str]]:
    """Yield the kinds that a matcher may match, each in one version, with the subresource that it names.

    >>> from pyverno.engine.match import Filter
    >>> from pyverno.kube.gvk import parse_kind_selector
    >>> from pyverno.kube.kinds import BUILTIN_KINDS
    >>> matcher = Matcher(any_of=(Filter(kinds=(parse_kind_selector("Pod"),)),))
    >>> [(info.api_version, info.kind, subresource) for info, subresource in resources_of(matcher, BUILTIN_KINDS)]
    [('v1', 'Pod', '')]
    """
    found: dict[tuple[str, str, str], KindInfo] = {}
    if isinstance(matcher, ConstraintMatcher):
        named = _of_constraints(matcher, kinds)
    elif isinstance(matcher, Matcher):
        named = _of_selectors((selector for block in matcher.blocks for selector in block.kinds), kinds)
    else:
        named = iter(())
    for info, subresource in named:
        found.setdefault((info.group, info.kind, subresource), info)
    for (_, _, subresource), info in found.items():
        yield info, subresource


def _of_constraints(matcher: ConstraintMatcher, kinds: KindTable) -> Iterator[tuple[KindInfo, str]]:
    for rule in matcher.rules:
        for info in kinds:
            if not ({"*", info.group} & rule.groups and {"*", info.version} & rule.versions):
                continue
            for resource, subresource in rule.resources:
                if resource in ("*", info.plural) and (not subresource or subresource in info.subresources):
                    yield info, subresource


def _of_selectors(selectors: Iterator[KindSelector], kinds: KindTable) -> Iterator[tuple[KindInfo, str]]:
    for selector in selectors:
        for info in kinds:
            if selector.matches(info.gvk, ""):
                yield info, ""


async def list_subjects(
    client: Client, matcher: RequestMatcher, kinds: KindTable, namespace: str = ""
) -> AsyncIterator[Subject | PyvernoError]:
    """Yield the objects of all kinds that a matcher may match, in a namespace or all ("").

    A kind that may not be listed is yielded as the error; one that cannot be listed (`tokenreviews`) has no objects.
    Raises HostError.
    """
    for info, subresource in resources_of(matcher, kinds):
        if namespace and not info.namespaced:
            continue
        if subresource and info.subresource_gvk(subresource) != info.gvk:
            yield HostError(f"{info.plural}/{subresource} can only be changed as a target of another resource")
            continue
        try:
            listed = await client.list(info.gvr, namespace)
        except StatusError as error:
            if error.status not in _NOT_LISTABLE:
                yield error
            continue
        for item in listed["items"]:
            yield Subject({"apiVersion": info.api_version, "kind": info.kind, **item}, info, subresource)
