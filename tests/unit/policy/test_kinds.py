"""The registry of policy kinds."""

from pyverno.kube.gvk import GVK
from pyverno.kube.kinds import BUILTIN_KINDS
from pyverno.policy.kinds import KNOWN_KINDS, POLICY_KINDS, find_kind, is_policy


def test_every_kind_is_registered_once():
    """Group and kind are the key of the registry."""
    names = [(row.group, row.kind) for row in POLICY_KINDS]
    assert len(names) == len(set(names)) == 21


def test_every_served_version_of_every_kind_decodes():
    """A kind has a schema for each version that it lists."""
    assert [] == [(row.kind, version) for row in POLICY_KINDS for version in row.versions if not row.decoder(version)]


def test_webhook_paths_are_those_of_the_upstream_configurations():
    """The API server calls a kind and its namespaced twin at paths of their short names."""
    expected = {
        "ValidatingPolicy": {"/vpol"},
        "NamespacedValidatingPolicy": {"/nvpol"},
        "MutatingPolicy": {"/mpol"},
        "NamespacedMutatingPolicy": {"/nmpol"},
        "GeneratingPolicy": {"/gpol"},
        "NamespacedGeneratingPolicy": {"/ngpol"},
        "ImageValidatingPolicy": {"/ivpol/validate", "/ivpol/mutate"},
        "NamespacedImageValidatingPolicy": {"/nivpol/validate", "/nivpol/mutate"},
    }
    assert expected == {row.kind: {path for path, _ in row.routes} for row in POLICY_KINDS if row.routes}


def test_namespaced_twins_have_the_versions_of_their_kind():
    """A namespaced CEL kind is never forgotten beside its cluster-wide twin."""
    for row in POLICY_KINDS:
        if row.kind.startswith("Namespaced"):
            twin = find_kind(row.group, row.kind.removeprefix("Namespaced"))
            assert twin is not None
            assert (row.namespaced, twin.namespaced, row.family) == (True, False, twin.family)


def test_other_documents_are_no_policies():
    """Pods, lists and wrong types are not policies."""
    assert [is_policy(each) for each in ({"apiVersion": "v1", "kind": "Pod"}, [], {"apiVersion": 1, "kind": []})] == [
        False
    ] * 3


def test_a_cluster_with_kyverno_serves_every_version_of_every_policy_kind():
    """The table of kinds follows the registry: plural, scope and short names; the newest stable version leads."""
    for row in POLICY_KINDS:
        for version in row.versions:
            known = KNOWN_KINDS.find(GVK(row.group, version, row.kind))
            assert known is not None
            assert (row.plural, row.namespaced, row.short_names) == (known.plural, known.namespaced, known.short_names)
    assert ["v1", "v1beta1", "v1alpha1"] == [each.version for each in KNOWN_KINDS.by_kind("ValidatingPolicy")]


def test_kubernetes_alone_knows_no_kind_of_kyverno():
    """A Kubernetes API server serves its own admission policies and nothing of Kyverno."""
    assert [] == [info.kind for info in BUILTIN_KINDS if info.group.endswith("kyverno.io")]
