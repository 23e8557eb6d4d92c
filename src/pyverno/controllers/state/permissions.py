"""Checks, by SubjectAccessReviews, that service accounts have the permissions policies need.

Reports need read access, mutate-existing rules need write access to their targets. An account that is not configured
is not checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, TypeGuard

from pyverno.cluster.client import Client
from pyverno.compiler.autogen.patterns import expand
from pyverno.controllers.state.targets import targets_of
from pyverno.errors import HostError
from pyverno.kube.gvk import GVK, GVR, parse_api_version
from pyverno.kube.kinds import KindTable
from pyverno.kube.status import StatusError
from pyverno.kube.wildcard import has_wildcard
from pyverno.lazyregex import regex
from pyverno.policy.cel.constraints import MatchConstraints
from pyverno.policy.cel.policies import CelPolicy
from pyverno.policy.clusterpolicy import ClusterPolicy
from pyverno.policy.generate import Generate
from pyverno.policy.kinds import find_kind
from pyverno.policy.mutate import Mutate, Target
from pyverno.policy.rule import VerifyImages
from pyverno.policy.validate import Validate

__all__ = ["ReadPermissions", "TargetPermissions", "is_scanned", "lacks", "resources_of"]

_REVIEWS: Final = GVR("authorization.k8s.io", "v1", "subjectaccessreviews")
_VERBS: Final = ("get", "list", "watch")
_EVERYTHING: Final = "*/*"
_TARGET_VERBS: Final = ("get", "update")
_GENERATED_VERBS: Final = ("get", "create")
_SYNCHRONIZED_VERBS: Final = ("get", "create", "update", "delete")
_NAME: Final = regex("[a-z0-9]([-a-z0-9]*[a-z0-9])?")


def resources_of(constraints: MatchConstraints | None) -> Iterator[GVR]:
    """Yield the resources of constraints, each once, as written: wildcards and subresources are not resolved."""
    seen: set[GVR] = set()
    for rule in constraints.resource_rules if constraints is not None else ():
        for group in rule.api_groups:
            for version in rule.api_versions:
                for resource in rule.resources:
                    gvr = GVR(group, version, resource)
                    if gvr not in seen:
                        seen.add(gvr)
                        yield gvr


def is_scanned(policy: object) -> TypeGuard[CelPolicy]:
    """Return whether reports are made of a policy in CEL: those that delete objects produce no results."""
    row = find_kind("policies.kyverno.io", policy.kind) if isinstance(policy, CelPolicy) else None
    return row is not None and not row.deletes


class ReadPermissions:
    """Checks what the reports account may get, list and watch; a granted policy is not checked again."""

    def __init__(self, client: Client, account: str) -> None:
        """Take the client and the account's user name (`system:serviceaccount:NAMESPACE:NAME`)."""
        self._client = client
        self._account = account
        self._granted: dict[tuple[str, str], CelPolicy] = {}
        self._listed: set[GVR] = set()
        self._readable: set[GVR] = set()

    async def unlisted(self, resources: Iterable[GVR]) -> tuple[str, ...]:
        """Return a message for each resource that the account may not list; a granted one is not checked again."""
        texts: list[str] = []
        for gvr in resources if self._account else ():
            if gvr in self._listed:
                continue
            problem = await lacks(self._client, self._account, "list", gvr)
            if problem is None:
                self._listed.add(gvr)
            else:
                texts.append(f"list {gvr.group}/{gvr.version}, Resource={gvr.resource}: {problem}")
        return tuple(texts)

    async def missing(self, policy: CelPolicy) -> tuple[str, ...]:
        """Return a message for each verb that the account lacks on a resource of a policy.

        Background scans read objects, never their subresources.
        """
        place = (policy.kind, policy.key)
        if not self._account or self._granted.get(place) is policy:
            return ()
        texts: list[str] = []
        for gvr in resources_of(policy.spec.match_constraints):
            if "/" in gvr.resource and gvr.resource != _EVERYTHING:
                continue
            for verb in _VERBS:
                problem = await lacks(self._client, self._account, verb, gvr)
                if problem is not None:
                    texts.append(f"{verb} {gvr.group}/{gvr.version}, Resource={gvr.resource}: {problem}")
        if not texts:
            self._granted[place] = policy
        return tuple(texts)

    async def unreadable(self, policy: ClusterPolicy, kinds: KindTable) -> tuple[str, ...]:
        """Return warnings about kinds of a policy that the account may not read, in Kyverno's words.

        Of each rule the kinds before the first wildcard are checked. (Kyverno: pkg/policy/validate, mutate and
        generate)
        """
        texts: dict[str, None] = {}
        for rule in expand(policy) if self._account else ():
            if isinstance(rule.action, VerifyImages) or (isinstance(rule.action, Mutate) and rule.action.foreach):
                continue
            for text in dict.fromkeys(rule.match.kinds()):
                if has_wildcard(text):
                    break
                lacking = await self._unreadable(text, kinds)
                if lacking:
                    texts[lacking] = None
                    if isinstance(rule.action, Validate):  # Kyverno: only the first one
                        break
        return tuple(texts)

    async def _unreadable(self, text: str, kinds: KindTable) -> str:
        target = next(iter(targets_of(text, kinds)), None)
        if target is None:
            return ""  # an unknown kind has a warning of its own
        resource = f"{target.resource}/{target.subresource}" if target.subresource else target.resource
        gvr = GVR(target.group, target.version, resource)
        if gvr in self._readable:
            return ""
        verbs = [verb for verb in _VERBS if await lacks(self._client, self._account, verb, gvr) is not None]
        if not verbs:
            self._readable.add(gvr)
        return f"{self._account} requires permissions {','.join(verbs)} for resource {text}" if verbs else ""


class TargetPermissions:
    """Checks that the account which changes existing objects may change the targets of rules."""

    def __init__(self, client: Client, account: str, kinds: Callable[[], KindTable]) -> None:
        """Take the client, the account's user name, and the currently served kinds."""
        self._client = client
        self._account = account
        self._kinds = kinds

    async def refusals(self, policy: ClusterPolicy) -> tuple[str, ...]:
        """Return why a policy should be rejected: a message for each rule that the account could not apply."""
        if not self._account:
            return ()
        texts: list[str] = []
        for index, rule in enumerate(policy.spec.rules):
            if isinstance(rule.action, Generate):
                lacking = await self._lacks_generating(rule.action, policy.namespace or "")
                texts.extend(f"path: spec.rules[{index}].generate..: {text}" for text in lacking)
                continue
            targets = rule.action.targets if isinstance(rule.action, Mutate) else None
            missing = [
                text for target in targets or () if (text := await self._missing(target, policy.namespace or ""))
            ]
            if missing:
                texts.append(
                    f"path: spec.rules[{index}].mutate.targets.: auth check fails, additional privileges are required "
                    f"for the service account '{self._account}': {'; '.join(missing)}"
                )
        return tuple(texts)

    async def _missing(self, target: Target, own_namespace: str) -> str:
        namespace = own_namespace or target.namespace
        return await self._lacks(target.api_version, target.kind, namespace, _TARGET_VERBS, name=target.name)

    async def _lacks_generating(self, generate: Generate, own_namespace: str) -> list[str]:
        """Return a text for each kind that the account could not generate, and if it has to, keep in step."""
        verbs = _SYNCHRONIZED_VERBS if generate.synchronize else _GENERATED_VERBS
        patterns = [generate.pattern] if generate.foreach is None else [each.pattern for each in generate.foreach]
        wanted: dict[tuple[str, str, str], None] = {}
        for pattern in patterns:
            namespace = own_namespace or pattern.namespace
            for text in pattern.clone_list.kinds or (f"{pattern.api_version}/{pattern.kind}",):
                *parts, kind = text.split("/")
                if kind[:1].islower():  # a subresource (`v1/Pod/status`) is written with its object
                    kind = parts.pop()
                wanted["/".join(parts), kind, namespace] = None
        texts = [await self._lacks(*each, verbs) for each in wanted]
        return [text for text in texts if text]

    async def _lacks(self, api_version: str, kind: str, namespace: str, verbs: Sequence[str], *, name: str = "") -> str:
        """Return which verbs an account lacks for a kind or its subresource (`Deployment/scale`), "" for none.

        A role may name the objects that it is for, so a check of one object includes its `name`.
        """
        owner, _, subresource = kind.partition("/")
        found = self._kinds().find(GVK(*parse_api_version(api_version), owner))
        if found is None:  # variables and wildcards are resolved only when the rule runs
            return ""
        if not _NAME.fullmatch(namespace):
            namespace = ""
        gvr = GVR(found.group, found.version, f"{found.plural}/{subresource}" if subresource else found.plural)
        place = (gvr, namespace)
        name = name if _NAME.fullmatch(name) else ""
        asking = (self._client, self._account)
        lacking = [verb for verb in verbs if await lacks(*asking, verb, *place, name=name) is not None]
        where = f" in namespace {namespace}" if namespace else ""
        what = f"{api_version}/{kind}{where}"
        return f"{self._account} requires permissions {','.join(lacking)} for resource {what}" if lacking else ""


async def lacks(
    client: Client, account: str, verb: str, gvr: GVR, namespace: str = "", *, name: str = ""
) -> str | None:
    """Return why an account may not do something (the reason can be empty), None when it may."""
    resource, _, subresource = gvr.resource.partition("/")
    asked = {"verb": verb, "group": gvr.group, "version": gvr.version, "resource": resource}
    if subresource:
        asked["subresource"] = subresource
    if namespace:
        asked["namespace"] = namespace
    if name:
        asked["name"] = name
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": account, "resourceAttributes": asked},
    }
    try:
        status = (await client.create(_REVIEWS, review)).get("status") or {}
    except (HostError, StatusError) as error:
        return str(error)
    return None if status.get("allowed") else str(status.get("reason") or "")
