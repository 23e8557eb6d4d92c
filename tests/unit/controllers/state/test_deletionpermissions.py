"""Permissions that the cleanup controller lacks for a policy, checked against a real API server."""

from __future__ import annotations

import asyncio
from typing import Any

from kubesandbox import Sandbox
from pyverno.cluster.access import load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.compiler.compile import compile_document
from pyverno.controllers.state.deletionpermissions import DeletionPermissions
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.kinds import BUILTIN_KINDS
from pyverno.kube.yaml.documents import Document
from pyverno.policy.cel.policies import DeletingPolicy
from pyverno.policy.cleanup import CleanupPolicy
from tests.support.cleanupstage import cleanup_policy, deleting_policy

USER = "system:serviceaccount:kyverno:kyverno-cleanup-controller"
RBAC = "rbac.authorization.k8s.io"
RULES = [
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "delete"]},
    {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]},
    {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["known"], "verbs": ["list", "delete"]},
]


def missing(*bodies: JSONObject, account: str = USER) -> list[tuple[str, ...]]:
    """Return what is missing for each policy in a cluster with these rules."""

    async def run() -> list[tuple[str, ...]]:
        async with (
            Sandbox(controllers=False) as sandbox,
            Client(load_kubeconfig(sandbox.kubeconfig, environment={})) as client,
        ):
            metadata = {"name": "cleanup"}
            await client.create(GVR(RBAC, "v1", "clusterroles"), {"metadata": metadata, "rules": RULES})
            reference = {"apiGroup": RBAC, "kind": "ClusterRole", "name": "cleanup"}
            subjects = [{"kind": "ServiceAccount", "namespace": "kyverno", "name": "kyverno-cleanup-controller"}]
            binding: dict[str, Any] = {"metadata": metadata, "roleRef": reference, "subjects": subjects}
            await client.create(GVR(RBAC, "v1", "clusterrolebindings"), binding)
            permissions = DeletionPermissions(client, account, lambda: BUILTIN_KINDS)
            return [await permissions.missing(_decoded(body)) for body in bodies]

    return asyncio.run(run())


def _decoded(body: JSONObject) -> CleanupPolicy | DeletingPolicy:
    written = compile_document(Document(body, "")).written
    assert isinstance(written, (CleanupPolicy, DeletingPolicy))
    return written


def test_the_missing_verb_is_named() -> None:
    """Each verb and kind has one message, in Kyverno's words."""
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods", "configmaps"]}]
    found = missing(
        cleanup_policy(),
        cleanup_policy(kinds=("ConfigMap", "apps/v1/Deployment")),
        deleting_policy(matchConstraints={"resourceRules": rules}),
    )
    no_delete = "cleanup controller has no permission to delete kind ConfigMap"
    deployments = tuple(f"cleanup controller has no permission to {verb} kind apps/v1/Deployment" for verb in VERBS)
    assert [(), (no_delete, *deployments), (no_delete,)] == found


VERBS = ("delete", "list")


def test_a_permission_for_names_suffices_for_these_names() -> None:
    """Other names and wildcards still lack permission."""

    def secrets(*names: str) -> JSONObject:
        return cleanup_policy(match={"any": [{"resources": {"kinds": ["Secret"], "names": list(names)}}]})

    lacks = tuple(f"cleanup controller has no permission to {verb} kind Secret" for verb in VERBS)
    assert [(), lacks, lacks] == missing(secrets("known"), secrets("known", "other"), secrets("kn*"))


def test_without_an_account_nothing_is_checked() -> None:
    """Outside of an installation the account that would delete is unknown."""
    assert [()] == missing(cleanup_policy(kinds=("Secret",)), account="")
