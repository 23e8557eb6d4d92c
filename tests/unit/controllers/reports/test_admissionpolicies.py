"""Admission policies of Kubernetes in scans: those with the label, with the bindings that are not excluded."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from kubesandbox.sandbox import Sandbox, Settings
from pyverno.cluster.access import load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.compiler.compile import compile_documents
from pyverno.controllers.reports.admissionpolicies import AdmissionPolicies
from pyverno.controllers.reports.contexts import Contexts
from pyverno.controllers.reports.evaluation import Evaluator, ReportFilter
from pyverno.controllers.reports.objects import BucketKey
from pyverno.controllers.reports.plan import make_plan
from pyverno.engine.host import NO_HOST
from pyverno.engine.rule import CompiledPolicy
from pyverno.kube.gvk import GVK, GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.kinds import BUILTIN_KINDS
from pyverno.kube.yaml.documents import Document

GROUP = "admissionregistration.k8s.io"
POLICIES = GVR(GROUP, "v1", "validatingadmissionpolicies")
BINDINGS = GVR(GROUP, "v1", "validatingadmissionpolicybindings")
ENABLED = {"reports.kyverno.io/enabled": "true"}


def policy(name: str, labels: dict[str, str]) -> JSONObject:
    """Return a policy for ConfigMaps."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    spec = {"matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": "true"}]}
    metadata = {"name": name, "labels": labels}
    return {"apiVersion": f"{GROUP}/v1", "kind": "ValidatingAdmissionPolicy", "metadata": metadata, "spec": spec}


def binding(name: str, policy_name: str, labels: dict[str, str]) -> JSONObject:
    """Return a binding."""
    kind, metadata = "ValidatingAdmissionPolicyBinding", {"name": name, "labels": labels}
    spec = {"policyName": policy_name, "validationActions": ["Audit"]}
    return {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": metadata, "spec": spec}


def scanned(*bodies: JSONObject, validating: bool = True) -> tuple[CompiledPolicy, ...]:
    """Return the policies that are scanned with in a cluster that has these objects."""
    found: list[CompiledPolicy] = []

    async def play() -> None:
        async with Sandbox(Settings(controllers=False)) as box, Client(load_kubeconfig(box.kubeconfig)) as client:
            for body in bodies:
                await client.create(BINDINGS if body["kind"].endswith("Binding") else POLICIES, body)
            policies = AdmissionPolicies(client, lambda: None, validating=validating)
            try:
                async with asyncio.timeout(60), asyncio.TaskGroup() as group:
                    policies.follow(BUILTIN_KINDS, group)
                    while not policies.is_synced:
                        await asyncio.sleep(0.01)
                    found.extend(policies.policies())
                    raise Known
            except* Known:
                pass

    asyncio.run(play())
    return tuple(found)


class Known(Exception):  # noqa: N818 - it ends the tasks of the watches
    """The policies are known."""


def names(policies: tuple[CompiledPolicy, ...]) -> list[str]:
    """Return the names of policies."""
    return [each.info.name for each in policies]


def reported(policies: Sequence[CompiledPolicy], labels: dict[str, str]) -> list[JSONObject]:
    """Return the items of the report on a ConfigMap with these labels."""
    contexts = Contexts(lambda _name: None)
    contexts.follow(make_plan(policies, (), BUILTIN_KINDS))
    metadata = {"name": "c", "namespace": "team", "labels": labels}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
    context = contexts.find(BucketKey(GVR("", "v1", "configmaps"), "team"), GVK("", "v1", "ConfigMap"))
    return list(Evaluator(ReportFilter()).evaluate(body, context, NO_HOST).items(1))


def test_only_policies_with_the_label_are_scanned() -> None:
    """Its value is `true`; without the flag there are none."""
    bodies = [
        policy(name, labels)
        for name, labels in (("on", ENABLED), ("off", {"reports.kyverno.io/enabled": "false"}), ("bare", {}))
    ]
    bodies += [binding(name, name, {}) for name in ("on", "off", "bare")]
    assert ["on"] == names(scanned(*bodies))
    assert [] == names(scanned(*bodies, validating=False))


def test_a_binding_with_the_label_against_reports_is_left_out() -> None:
    """The results are those of the other bindings."""
    excluded = {"reports.kyverno.io/disabled": ""}
    policies = scanned(policy("a", ENABLED), binding("out", "a", excluded), binding("in", "a", {}))
    items = reported(policies, {})
    assert [("pass", "in")] == [(each["result"], each["properties"]["binding"]) for each in items]


def test_a_mutation_that_is_not_applied_names_its_binding() -> None:
    """Each binding has a result of its own: without the name those of several bindings would be one."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    patch = {"expression": 'Object{metadata: Object.metadata{labels: {"a": "b"}}}'}
    mutating = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": "labelled", "labels": ENABLED},
        "spec": {
            "reinvocationPolicy": "Never",
            "matchConstraints": {"resourceRules": [rule]},
            "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": patch}],
        },
    }
    bound = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": "everywhere"},
        "spec": {"policyName": "labelled"},
    }
    documents = [Document(mutating, ""), Document(bound, "")]
    policies = [each.policy for each in compile_documents(documents).items if each.policy is not None]
    for labels, result in (({}, "fail"), ({"a": "b"}, "pass")):
        [item] = reported(policies, labels)
        assert (result, "everywhere") == (item["result"], item["properties"]["mapBinding"])
