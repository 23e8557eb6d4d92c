"""Writes the planned webhooks to the API server, policy by policy where it does not accept all of them.

A policy whose webhook is refused is left out, or keeps its last accepted webhook, and is reported; it stops no other.
Everything is tried as a dry run first.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace
from urllib.parse import urlsplit

from pyverno.controllers.state.policymemo import PolicyMemo
from pyverno.controllers.webhooks.configurations import plan
from pyverno.controllers.webhooks.sources import Endpoint, PolicyKey, Sources, key_of
from pyverno.controllers.webhooks.writer import REFUSALS, ConfigurationWriter
from pyverno.kube.json import JSONObject, encode
from pyverno.kube.status import StatusError
from pyverno.policy.cel.policies import CelPolicy
from pyverno.policy.clusterpolicy import ClusterPolicy
from pyverno.threads import in_thread
from pyverno.webhook.routes import read_route

__all__ = ["WebhookRegistration"]

log = logging.getLogger("pyverno.admission")


class WebhookRegistration:
    """Registers the webhooks of policies, and remembers which of them the API server refused."""

    def __init__(self, controller: ConfigurationWriter) -> None:
        """Take what writes configurations."""
        self._controller = controller
        self.in_place: dict[str, JSONObject] = {}
        """The configurations as they were written last, by kind."""
        self._memo = PolicyMemo()
        self._refused: dict[PolicyKey, tuple[str, str]] = {}
        self._unconditional: dict[PolicyKey, str] = {}
        self._conditions = ""

    async def register(self, sources: Sources) -> Mapping[PolicyKey, str]:
        """Make both configurations what policies ask for; return the policies that are refused, with the reasons.

        Raises StatusError when even what is left is refused, and HostError.
        """
        self._forget_what_changed(sources)
        self._memo.keep(_policies(sources))
        sources = replace(sources, memo=self._memo)
        try:
            await self._write(self._accepted_sources(sources))
        except StatusError as error:
            if error.status not in REFUSALS:
                raise
            log.warning("webhooks are refused", extra={"fields": {"error": error.message}})
            await self._find_faults(sources)
            await self._write(self._accepted_sources(sources))
        return {key: message for key, (_, message) in self._refused.items()}

    async def _write(self, sources: Sources) -> None:
        planned = await in_thread(plan, sources)  # it can take a second, and requests do not wait
        for wanted in planned.configurations:
            whole = await self._with_accepted(wanted, sources.endpoint)
            await self._controller.apply(whole, is_fixed=not sources.settings.updates)
            self.in_place[wanted["kind"]] = whole

    def _accepted_sources(self, sources: Sources) -> Sources:
        """Return the sources without policies that the API server is known to refuse."""
        configuration = sources.configuration
        if self._conditions and self._conditions == _digest(configuration.match_conditions):
            configuration = replace(configuration, match_conditions=())
        return replace(
            sources.without(frozenset(self._refused)),
            configuration=configuration,
            unconditional=frozenset(self._unconditional),
        )

    def _forget_what_changed(self, sources: Sources) -> None:
        """Retry policies that changed since they were refused."""
        present = {key_of(policy): policy for policy in _policies(sources)}
        for memory in (self._refused, self._unconditional):
            for key in tuple(memory):
                policy, said = present.get(key), memory[key]
                digest = said if isinstance(said, str) else said[0]
                if policy is None or _digest_spec(policy) != digest:
                    del memory[key]

    async def _find_faults(self, sources: Sources) -> None:
        """Find out which of the webhooks are refused, and which policies of theirs are the reason."""
        configuration = sources.configuration
        planned = plan(self._accepted_sources(sources))
        refused = {}
        for wanted in planned.configurations:
            for hook in wanted["webhooks"]:
                problem = await self._controller.trial(wanted, [hook])
                if problem:
                    refused[hook["name"]] = problem
        suspects = dict.fromkeys(key for name in refused for key in planned.policies[name])
        if refused and await self._is_about_general_conditions(sources, suspects):
            self._conditions = _digest(configuration.match_conditions)
            fields = {"problem": next(iter(refused.values()))}
            log.error("the matchConditions of the ConfigMap are refused and left out", extra={"fields": fields})
        for key in suspects:
            await self._judge(key, self._accepted_sources(sources).only(key))

    async def _is_about_general_conditions(self, sources: Sources, suspects: Iterable[PolicyKey]) -> bool:
        """Return whether webhooks are taken as soon as the conditions of the ConfigMap are left out."""
        if not sources.configuration.match_conditions:
            return False
        bare = replace(sources, configuration=replace(sources.configuration, match_conditions=()))
        for key in suspects:
            if await self._problem(sources.only(key)) and not await self._problem(bare.only(key)):
                return True
        return False

    async def _judge(self, key: PolicyKey, alone: Sources) -> None:
        problem = await self._problem(alone)
        if not problem:
            return
        [policy] = _policies(alone)
        digest = _digest_spec(policy)
        if not await self._problem(replace(alone, unconditional=frozenset({key}))):
            self._unconditional[key] = digest  # the engine judges these conditions just as well
            return
        self._refused[key] = (digest, problem)
        fields = {"kind": key[0], "namespace": key[1], "policy": key[2], "problem": problem}
        log.error("the webhook of a policy is refused", extra={"fields": fields})

    async def _problem(self, sources: Sources) -> str:
        for wanted in plan(sources).configurations:
            if wanted["webhooks"]:
                problem = await self._controller.trial(wanted, wanted["webhooks"])
                if problem:
                    return problem
        return ""

    async def _with_accepted(self, wanted: JSONObject, endpoint: Endpoint) -> JSONObject:
        """Return a configuration with webhooks that were taken before, of policies that are refused as they are now.

        An author's mistake must not take away the protection that was there.
        """
        found = await self._controller.find(wanted) if self._refused else None
        if found is None:
            return wanted
        names = {hook["name"] for hook in wanted["webhooks"]}
        kept = [
            {**hook, "clientConfig": endpoint.client_config(_path_of(hook))}
            for hook in found.get("webhooks") or ()
            if hook["name"] not in names and any(_is_own(hook, key) for key in self._refused)
        ]
        return {**wanted, "webhooks": sorted([*wanted["webhooks"], *kept], key=lambda hook: hook["name"])}


def _policies(sources: Sources) -> tuple[ClusterPolicy | CelPolicy, ...]:
    return (*sources.legacy, *sources.cel)


def _digest_spec(policy: ClusterPolicy | CelPolicy) -> str:
    return _digest(policy.spec.raw)


def _is_own(hook: JSONObject, key: PolicyKey) -> bool:
    """Return whether a webhook serves this policy alone."""
    kind, namespace, name = key
    route = read_route(_path_of(hook))
    place = f"{namespace}-{name}" if namespace else name
    is_named = route is not None and kind in route.kinds and route.names == (name,)
    return is_named and hook["name"].endswith(f"-finegrained-{place}")


def _path_of(hook: JSONObject) -> str:
    config = hook["clientConfig"]
    return str(urlsplit(config["url"]).path if "url" in config else config["service"].get("path", ""))


def _digest(value: object) -> str:
    return hashlib.sha256(encode(value).encode()).hexdigest()
