"""Tests of `kubesandbox.discovery.descriptions`."""

from __future__ import annotations

from kubesandbox.discovery.descriptions import descriptions
from pyverno.kube.schemas import VERSIONS

POD = "io.k8s.api.core.v1.PodSpec"


def test_every_version_explains_its_fields() -> None:
    """With its own words."""
    assert all(descriptions(version, POD)["containers"] for version in VERSIONS)
    assert "resourceClaims" in descriptions("1.35", POD)
    assert "resourceClaims" not in descriptions("1.25", POD)


def test_what_is_not_known_is_not_explained() -> None:
    """Neither a version nor a type."""
    assert {} == descriptions("1.10", POD)
    assert {} == descriptions("1.35", "io.k8s.Nothing")
