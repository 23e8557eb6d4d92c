"""Rules that ask: a ConfigMap, the API server, the global context and a service; in a cluster and on the command line.

The command line is given the same objects as files and the answer of the service as a recorded value; the verdicts must
be the same.
"""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Mapping
from contextlib import redirect_stdout
from pathlib import Path

import pytest
from aiohttp import web

from kubesandbox.sandbox import Sandbox, Settings
from pyverno.cli.root import run
from pyverno.cluster.access import load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.cluster.egress import EgressSettings
from pyverno.cluster.egressrules import EgressRules
from pyverno.controllers.admission.controller import AdmissionSettings
from pyverno.controllers.state.hosts import HostSettings
from pyverno.kube.admissionreview import AdmissionRequest
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.status import StatusError
from pyverno.telemetry.observer import AdmissionOutcome
from pyverno.testing import PolicySandbox
from tests.e2e.admission.deployment import until
from tests.support.services import Service

CONFIG_MAPS = GVR("", "v1", "configmaps")
SECRETS = GVR("", "v1", "secrets")
POLICIES = GVR("kyverno.io", "v1", "clusterpolicies")
ENTRIES = GVR("kyverno.io", "v2", "globalcontextentries")
OWNERS: JSONObject = {"owners": ["ann", "bob"]}
Verdicts = Mapping[tuple[str, str], str]


def _config_map(name: str, *, labels: Mapping[str, str] | None = None, **data: str) -> JSONObject:
    metadata: JSONObject = {"name": name, "namespace": "default", "labels": dict(labels or {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def _policy(name: str, entry: JSONObject, known: str) -> JSONObject:
    """Return a policy that requires the owner of a Secret to be in the data of a context entry."""
    return {
        "apiVersion": "kyverno.io/v1",
        "kind": "ClusterPolicy",
        "metadata": {"name": name, "annotations": {"pod-policies.kyverno.io/autogen-controllers": "none"}},
        "spec": {
            "rules": [
                {
                    "name": "owner",
                    "match": {"any": [{"resources": {"kinds": ["Secret"], "namespaces": ["default"]}}]},
                    "context": [{"name": "found", **entry}],
                    "validate": {
                        "failureAction": "Enforce",
                        "message": f"{name} does not know the owner",
                        "deny": {
                            "conditions": {
                                "all": [
                                    {
                                        "key": "{{ request.object.metadata.labels.owner }}",
                                        "operator": "AnyNotIn",
                                        "value": f"{{{{ {known} }}}}",
                                    }
                                ]
                            }
                        },
                    },
                }
            ]
        },
    }


def _policies(url: str) -> list[JSONObject]:
    return [
        _policy("from-config", {"configMap": {"name": "owners", "namespace": "default"}}, "found.data.one"),
        _policy(
            "from-api",
            {"apiCall": {"urlPath": "/api/v1/namespaces/default/configmaps/owners", "jmesPath": "values(data)"}},
            "found",
        ),
        _policy("from-entry", {"globalReference": {"name": "owners.all"}}, "found"),
        _policy("from-service", {"apiCall": {"service": {"url": url}, "jmesPath": "owners"}}, "found"),
    ]


def _entry() -> JSONObject:
    return {
        "apiVersion": "kyverno.io/v2",
        "kind": "GlobalContextEntry",
        "metadata": {"name": "owners"},
        "spec": {
            "kubernetesResource": {"version": "v1", "resource": "configmaps", "namespace": "default"},
            "projections": [{"name": "all", "jmesPath": "[?metadata.name == 'owners'].values(data)[]"}],
        },
    }


def _secret(name: str, owner: str) -> JSONObject:
    metadata = {"name": name, "namespace": "default", "labels": {"owner": owner}}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque"}


CACHED = _config_map("owners", labels={"cache.kyverno.io/enabled": "true"}, one="ann")
SUBJECTS = (_secret("good", "ann"), _secret("bad", "eve"))


class _Listener:
    """Keeps the result of every rule for every Secret."""

    def __init__(self) -> None:
        self.said: dict[str, Verdicts] = {}

    def answered(
        self, admission_request: AdmissionRequest, path: str, outcome: AdmissionOutcome, seconds: float
    ) -> None:
        """Keep the results of a review."""
        if outcome.review is not None and admission_request.kind.kind == "Secret" and path.startswith("/validate"):
            results = {(each.rule.policy.name, each.rule.name): str(each.status) for each in outcome.review.results}
            self.said[admission_request.name] = {**self.said.get(admission_request.name, {}), **results}

    def failed(self, path: str, error: BaseException) -> None:
        """Let a failure be seen in the answers."""


async def _in_a_cluster() -> tuple[dict[str, Verdicts], Service, str]:
    service = Service({"/owners": lambda: web.json_response(OWNERS)})
    listener = _Listener()
    refusal = ""
    async with service:
        url = service.url("/owners")
        egress = EgressSettings(EgressRules.read(["169.254.169.254"], [url]), seconds=60)
        settings = AdmissionSettings(hosts=HostSettings(egress=egress))
        async with (
            PolicySandbox(Sandbox(Settings(controllers=False)), listener, settings) as cluster,
            Client(load_kubeconfig(cluster.sandbox.kubeconfig)) as client,
        ):
            await client.create(CONFIG_MAPS, CACHED, "default")
            await client.create(ENTRIES, _entry())
            for policy in _policies(url):
                await client.create(POLICIES, policy)
            await cluster.settle()
            good, bad = SUBJECTS
            await client.create(SECRETS, good, "default")
            with pytest.raises(StatusError) as refused:
                await client.create(SECRETS, bad, "default")
            refusal = refused.value.message
    return listener.said, service, refusal


def _on_the_command_line(folder: Path) -> dict[str, Verdicts]:
    documents = {
        "policies": [*_policies("http://192.0.2.1/owners"), _entry()],
        "resources": list(SUBJECTS),
        "context": [
            {
                "apiVersion": "cli.kyverno.io/v1alpha1",
                "kind": "Context",
                "metadata": {"name": "cluster"},
                "spec": {"resources": [CACHED]},
            }
        ],
        "values": [
            {
                "apiVersion": "cli.kyverno.io/v1alpha1",
                "kind": "Values",
                "metadata": {"name": "recorded"},
                "policies": [
                    {"name": "from-service", "rules": [{"name": "owner", "values": {"found": OWNERS["owners"]}}]}
                ],
            }
        ],
    }
    for name, items in documents.items():
        (folder / f"{name}.yaml").write_text("\n---\n".join(json.dumps(each) for each in items))
    printed = io.StringIO()
    with redirect_stdout(printed):
        run(
            [
                "apply", str(folder / "policies.yaml"), "--resource", str(folder / "resources.yaml"),
                "--context-file", str(folder / "context.yaml"), "--values-file", str(folder / "values.yaml"),
                "--policy-report", "--output-format", "json",
            ]
        )  # fmt: skip
    text = printed.getvalue()
    return _reported(json.loads(text[text.index("{") :]))


def _reported(report: JSON) -> dict[str, Verdicts]:
    found: dict[str, dict[tuple[str, str], str]] = {}
    for result in report["results"]:
        for resource in result["resources"]:
            found.setdefault(resource["name"], {})[(result["policy"], result["rule"])] = result["result"]
    return dict(found)


def test_what_rules_ask_is_answered_alike_in_a_cluster_and_from_files(tmp_path: Path) -> None:
    """Four rules ask four kinds of questions: a known owner passes all of them, an unknown one fails all of them."""
    in_cluster, service, refusal = asyncio.run(_in_a_cluster())
    names = [(f"from-{source}", "owner") for source in ("config", "api", "entry", "service")]
    assert {"good": dict.fromkeys(names, "pass"), "bad": dict.fromkeys(names, "fail")} == in_cluster
    assert all(f"{name} does not know the owner" in refusal for name, _ in names)
    assert {"/owners"} == {each.path for each in service.asked}
    assert in_cluster == _on_the_command_line(tmp_path)


def test_a_service_that_is_not_on_the_allow_list_is_not_called() -> None:
    """The rule ends in an error, and an error of a rule that enforces denies."""

    async def play() -> None:
        service = Service({"/owners": lambda: web.json_response(OWNERS)})
        async with service:
            egress = EgressSettings(EgressRules.read((), ["http://example.com"]), seconds=60)
            settings = AdmissionSettings(hosts=HostSettings(egress=egress))
            async with (
                PolicySandbox(Sandbox(Settings(controllers=False)), _Listener(), settings) as cluster,
                Client(load_kubeconfig(cluster.sandbox.kubeconfig)) as client,
            ):
                await client.create(POLICIES, _policies(service.url("/owners"))[-1])
                await cluster.settle()
                with pytest.raises(StatusError, match="is not permitted: no matching allowlist entry"):
                    await client.create(SECRETS, SUBJECTS[0], "default")
        assert [] == service.asked

    asyncio.run(play())


def test_the_leader_notes_when_an_entry_was_refreshed() -> None:
    """The status of an entry with an API call holds the time of the last answer; rules read that answer."""

    async def play() -> None:
        entry = _entry()
        entry["spec"] = {"apiCall": {"urlPath": "/api/v1/namespaces/default/configmaps", "refreshInterval": "200ms"}}
        entry["spec"]["projections"] = [{"name": "all", "jmesPath": "items[?metadata.name == 'owners'].values(data)[]"}]
        async with (
            PolicySandbox(Sandbox(Settings(controllers=False)), _Listener()) as cluster,
            Client(load_kubeconfig(cluster.sandbox.kubeconfig)) as client,
        ):
            await client.create(ENTRIES, entry)
            await client.create(POLICIES, _policies("")[2])
            await client.create(CONFIG_MAPS, CACHED, "default")
            await cluster.settle()
            found: JSONObject = {}

            async def status() -> JSONObject | None:
                nonlocal found
                found = (await client.get(ENTRIES, "owners")).get("status") or {}
                return found

            async def is_let_in() -> bool:
                try:
                    await client.create(SECRETS, SUBJECTS[0], "default")
                except StatusError:
                    return False
                return True

            await until("the entry has a status", status)
            assert {"lastRefreshTime", "conditions"} == set(found)
            await until("the rule reads an answer with the ConfigMap", is_let_in)

    asyncio.run(play())
