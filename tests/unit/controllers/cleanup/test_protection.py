"""Objects that are never deleted."""

from __future__ import annotations

import pytest

from pyverno.controllers.cleanup.protection import reason_to_keep
from pyverno.kube.gvk import GVK
from pyverno.kube.json import JSONObject
from pyverno.kube.kinds import BUILTIN_KINDS, KindInfo
from pyverno.policy.kinds import KNOWN_KINDS
from pyverno.webhook.configuration import Configuration

FILTERS = Configuration.read({"resourceFilters": "[*/*,team,*] [*/*,kyverno,*] [Event,*,*] [ReplicaSet/?*,*,*]"})
OURS = {"app.kubernetes.io/part-of": "kyverno"}


def kind(api: str, name: str) -> KindInfo:
    """Return a kind by group and name."""
    found = KNOWN_KINDS.find(GVK(api, "v2" if api == "kyverno.io" else "v1", name)) or BUILTIN_KINDS.find(
        GVK(api, "v1", name)
    )
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("info", "metadata", "reason"),
    [
        (kind("", "Pod"), {"name": "a", "namespace": "default"}, ""),
        (kind("", "Pod"), {"name": "a", "namespace": "default", "deletionTimestamp": "x"}, "being deleted"),
        (kind("", "Pod"), {"name": "a", "namespace": "team"}, "resourceFilters"),
        (kind("", "Namespace"), {"name": "team"}, "resourceFilters"),
        (kind("", "Namespace"), {"name": "other"}, ""),
        (kind("", "Namespace"), {"name": "kube-system"}, "system namespace"),
        (kind("", "Namespace"), {"name": "kyverno"}, "system namespace"),
        (kind("", "Secret"), {"name": "a", "namespace": "kyverno", "labels": OURS}, "belongs to Kyverno"),
        (kind("", "Secret"), {"name": "a", "namespace": "default", "labels": OURS}, ""),
        (kind("", "Event"), {"name": "a", "namespace": "default"}, ""),
        (kind("apps", "ReplicaSet"), {"name": "a", "namespace": "default"}, "resourceFilters"),
        (kind("kyverno.io", "PolicyException"), {"name": "a", "namespace": "kyverno"}, ""),
        (
            kind("apiextensions.k8s.io", "CustomResourceDefinition"),
            {"name": "clusterpolicies.kyverno.io"},
            "defines a kind of Kyverno",
        ),
        (kind("apiextensions.k8s.io", "CustomResourceDefinition"), {"name": "a.example.com"}, ""),
    ],
)
def test_the_reason_to_keep_an_object_is_named(info: KindInfo, metadata: JSONObject, reason: str) -> None:
    """An empty reason means that the object may be deleted."""
    found = reason_to_keep(info, metadata, FILTERS, own_namespace="kyverno")
    assert (reason in found) if reason else not found


def test_managed_objects_are_kept_where_the_flag_is_set() -> None:
    """Only `--protectManagedResources` keeps them."""
    metadata = {"name": "a", "namespace": "default", "labels": {"app.kubernetes.io/managed-by": "kyverno"}}
    found = [
        reason_to_keep(kind("", "Pod"), metadata, FILTERS, own_namespace="kyverno", protects_managed=protects)
        for protects in (False, True)
    ]
    assert ["", "it is managed by Kyverno"] == found
