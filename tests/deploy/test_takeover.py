"""Migration of a cluster from Kyverno and back: the parts of both that must be compatible."""

from __future__ import annotations

from typing import Any

import pytest

from pyverno.install.definitions import definitions
from tests.deploy.charts import render

pytest.importorskip("helm_python", reason="helm-python-sdk has no build for this platform")
PARTS = ("admission", "background", "reports", "cleanup")
_CEL = ("v1", "v1alpha1", "v1beta1")
VERSIONS = {
    "kyverno.io": {
        **dict.fromkeys(("clusterpolicies", "policies"), ("v1", "v2beta1")),
        **dict.fromkeys(("cleanuppolicies", "clustercleanuppolicies", "policyexceptions"), ("v2", "v2beta1")),
        "globalcontextentries": ("v2", "v2alpha1", "v2beta1"),
        "updaterequests": ("v1beta1", "v2"),
    },
    "policies.kyverno.io": {
        **{
            f"{prefix}{word}policies": _CEL if not prefix else ("v1", "v1beta1")
            for prefix in ("", "namespaced")
            for word in ("deleting", "generating", "imagevalidating", "mutating", "validating")
        },
        "policyexceptions": _CEL,
    },
    "reports.kyverno.io": dict.fromkeys(("ephemeralreports", "clusterephemeralreports"), ("v1",)),
    "wgpolicyk8s.io": dict.fromkeys(("policyreports", "clusterpolicyreports"), ("v1alpha2",)),
    "openreports.io": dict.fromkeys(("reports", "clusterreports"), ("v1alpha1",)),
}
"""The versions in each definition of Kyverno 1.19."""


def labels_of_kyverno(part: str) -> dict[str, str]:
    """Return the labels of the pods of one of Kyverno's Deployments."""
    fixed = {f"app.kubernetes.io/{key}": "kyverno" for key in ("instance", "part-of")}
    return fixed | {
        "app.kubernetes.io/component": f"{part}-controller",
        "app.kubernetes.io/name": f"kyverno-{part}-controller",
    }


def deployment(part: str) -> dict[str, Any]:
    """Return the Deployment of a controller."""
    found = {each["metadata"]["name"]: each for each in render({"mode": "split"}) if each["kind"] == "Deployment"}
    return found[f"kyverno-{part}-controller"]


@pytest.mark.parametrize("part", PARTS)
def test_a_deployment_adopts_the_orphaned_pods_of_kyverno(part: str) -> None:
    """Its name and selector fit what Kyverno's chart makes, so that one rollout replaces one by the other."""
    selector = deployment(part)["spec"]["selector"]["matchLabels"]
    assert {} == dict(selector.items() - labels_of_kyverno(part).items())
    assert f"{part}-controller" == selector["app.kubernetes.io/component"]


@pytest.mark.parametrize("part", PARTS)
def test_kyverno_adopts_the_orphaned_pods_of_the_chart(part: str) -> None:
    """Kyverno selects by instance, component and the whole it is part of."""
    wanted = {key: value for key, value in labels_of_kyverno(part).items() if not key.endswith("/name")}
    assert {} == dict(wanted.items() - deployment(part)["spec"]["template"]["metadata"]["labels"].items())


def test_every_version_that_a_cluster_may_have_stored_stays_in_its_definition() -> None:
    """Both ways: the API server refuses a definition without a version of status.storedVersions."""
    made = {
        (each["spec"]["group"], each["spec"]["names"]["plural"]): each["spec"]["versions"] for each in definitions()
    }
    kyverno = {(group, plural): versions for group, kinds in VERSIONS.items() for plural, versions in kinds.items()}
    assert kyverno.keys() == made.keys()
    assert {key: set(versions) for key, versions in kyverno.items()} == {
        key: {version["name"] for version in versions} for key, versions in made.items()
    }
