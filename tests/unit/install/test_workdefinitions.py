"""CRDs of objects that controllers exchange: served, structural, and accepting everything that is written."""

from __future__ import annotations

import asyncio

from kubesandbox.sandbox import Sandbox, Settings
from pyverno.cluster.access import load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.controllers.runtime.objectcount import ObjectCount
from pyverno.engine.result import FailureAction, ResourceRef, RuleResult, RuleType, Status
from pyverno.engine.rule import Family, PolicyInfo, RuleInfo
from pyverno.install.workdefinitions import work_definitions
from pyverno.kube.gvk import GVK, GVR
from pyverno.policy.updaterequest import AdmissionContext, RequestType, RuleContext, Trigger, UpdateRequestSpec
from pyverno.report.ephemeral import EPHEMERAL_REPORTS, Reported, admission_report
from pyverno.testing import install_definitions

CRDS = GVR("apiextensions.k8s.io", "v1", "customresourcedefinitions")
WORK = GVR("kyverno.io", "v2", "updaterequests")
STRICT = {"fieldValidation": "Strict"}


def test_written_objects_are_stored_unchanged() -> None:
    """The API server prunes no field of an UpdateRequest or a report."""
    request = {"uid": "1", "object": {"any": {"thing": [1, "two", None]}}, "dryRun": False}
    context = AdmissionContext({"username": "alice", "extra": {"a": ["b"]}}, ("r",), ("c",), request, "CREATE")
    rule = RuleContext("make", Trigger("v1", "Pod", "default", "web", "7"), delete_downstream=True)
    work = UpdateRequestSpec(RequestType.GENERATE, "copy", rule_context=(rule,), context=context).to_json("default")
    info = RuleInfo(PolicyInfo("ClusterPolicy", "kyverno.io/v1", "check", Family.RULES), "rule", RuleType.VALIDATION)
    result = RuleResult(info, FailureAction.AUDIT, Status.FAIL, "no", properties={"a": "b"})
    resource = ResourceRef("v1", "Pod", "default", "web")
    about = Reported(resource, "7", GVK("", "v1", "Pod"), GVR("", "v1", "pods"), "1")
    report = admission_report(about, [result], 1_700_000_000, version_of=lambda _: "5")

    async def run() -> None:
        sandbox = Sandbox(Settings(controllers=False))
        await sandbox.start()
        try:
            async with Client(load_kubeconfig(sandbox.kubeconfig), qps=0) as client:
                await install_definitions(client)
                for gvr, body in ((WORK, work), (EPHEMERAL_REPORTS[0], report)):
                    stored = await client.create(gvr, body, "default", query=STRICT)
                    assert body["spec"] == stored["spec"]
                counts = (
                    ObjectCount(client, (WORK,)),
                    ObjectCount(client, EPHEMERAL_REPORTS, selector="audit.kyverno.io/source=admission"),
                )
                assert [None, None] == [each.value for each in counts]
                running = [asyncio.create_task(each.run()) for each in counts]
                async with asyncio.timeout(60):
                    while [1, 1] != [each.value for each in counts]:
                        await asyncio.sleep(0.01)
                for task in running:
                    task.cancel()
                await asyncio.gather(*running, return_exceptions=True)
        finally:
            await sandbox.stop()

    asyncio.run(run())


def test_old_update_requests_do_not_stop_the_installation() -> None:
    """A cluster with v1beta1 among its stored versions accepts the CRD, which includes that version."""

    async def run() -> list[str]:
        sandbox = Sandbox(Settings(controllers=False))
        await sandbox.start()
        try:
            async with Client(load_kubeconfig(sandbox.kubeconfig), qps=0) as client:
                [wanted] = (each for each in work_definitions() if each["spec"]["names"]["kind"] == "UpdateRequest")
                schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
                old = {"name": "v1beta1", "served": True, "storage": True, "schema": schema}
                await client.create(CRDS, {**wanted, "spec": {**wanted["spec"], "versions": [old]}})
                found = await client.get(CRDS, wanted["metadata"]["name"])
                await client.update(CRDS, {**found, "spec": wanted["spec"]})
                found = await client.get(CRDS, wanted["metadata"]["name"])
                return sorted(found["status"]["storedVersions"])
        finally:
            await sandbox.stop()

    assert ["v1beta1", "v2"] == asyncio.run(run())
