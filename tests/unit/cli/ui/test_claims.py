"""A claim of a report names one object of the cluster, or nothing."""

from __future__ import annotations

import pytest

from pyverno.cli.ui.claims import resolve
from pyverno.engine.result import ResourceRef
from pyverno.errors import UsageError
from pyverno.kube.kinds import BUILTIN_KINDS


@pytest.mark.parametrize(
    ("ref", "reason"),
    [
        (ResourceRef("v9", "Secret", "own", "token"), "no kind `Secret` of `v9`"),
        (ResourceRef("v1/x", "Secret", "own", "token"), "no kind `Secret` of `v1/x`"),
        (ResourceRef("v1", "secrets", "own", "token"), "no kind `secrets`"),
        (ResourceRef("", "Pod/exec", "own", "web"), "no kind `Pod/exec`"),
        (ResourceRef("v1", "", "own", "web"), "no kind ``"),
        (ResourceRef("", "Event", "own", "e"), "several groups"),
        (ResourceRef("v1", "Node", "own", "n"), "lives in no namespace"),
        (ResourceRef("v1", "Namespace", "own", "own"), "lives in no namespace"),
        (ResourceRef("v1", "ConfigMap", "", "c"), "lives in namespaces"),
        *(
            (ResourceRef("v1", "ConfigMap", "own", name), "does not name an object")
            for name in ("", ".", "..", "a/b", "../../x", "%2e%2e", "a\x00", "a\\b", "a\n")
        ),
        (ResourceRef("v1", "ConfigMap", "../own", "c"), "does not name an object"),
    ],
)
def test_a_claim_that_names_no_single_object_is_refused(ref: ResourceRef, reason: str) -> None:
    """Before anything is read or asked."""
    with pytest.raises(UsageError, match=reason):
        resolve(ref, BUILTIN_KINDS)


@pytest.mark.parametrize(
    ("ref", "resource"),
    [
        (ResourceRef("v1", "ConfigMap", "own", "c"), "configmaps"),
        (ResourceRef("", "Deployment", "own", "web"), "deployments"),
        (ResourceRef("v1", "Node", "", "n"), "nodes"),
        (ResourceRef("rbac.authorization.k8s.io/v1", "ClusterRole", "", "system:node"), "clusterroles"),
    ],
)
def test_a_claim_is_the_resource_that_the_cluster_serves(ref: ResourceRef, resource: str) -> None:
    """Names may have colons; without a version the only group with the kind is meant."""
    assert resource == resolve(ref, BUILTIN_KINDS).plural
