"""The metrics of the cleanup controller, in Kyverno's names and labels (G9.10)."""

from __future__ import annotations

from pyverno.controllers.cleanup.metrics import CleanupMetrics
from pyverno.engine.result import ResourceRef
from pyverno.engine.rule import Family, PolicyInfo
from pyverno.kube.gvk import GVK
from pyverno.kube.kinds import BUILTIN_KINDS, KindInfo
from pyverno.telemetry.exposition import render_text
from pyverno.telemetry.metrics import Metrics

TARGET = ResourceRef("v1", "Pod", "team", "a")
CLEANUP = PolicyInfo("CleanupPolicy", "kyverno.io/v2", "clean", Family.RULES, "team")
DELETING = PolicyInfo("DeletingPolicy", "policies.kyverno.io/v1", "delete", Family.CEL, "")


def _pods() -> KindInfo:
    found = BUILTIN_KINDS.find(GVK("", "v1", "Pod"))
    assert found is not None
    return found


def test_deletions_and_failures_are_counted_by_what_caused_them() -> None:
    """A cleanup policy has the kind as label, a deleting policy the resource; unused labels are empty."""
    metrics = Metrics()
    counted = CleanupMetrics(metrics.instruments, lambda: [_pods()])
    counted.count(CLEANUP, _pods(), TARGET, "Orphan", failed=False)
    counted.count(CLEANUP, _pods(), TARGET, "", failed=True)
    counted.count(DELETING, _pods(), TARGET, "", failed=False)
    counted.count_ttl(_pods(), "team", failed=False)
    text = "".join(render_text(metrics.read()))
    found = {line.rpartition(" ")[0] for line in text.splitlines() if "_controller_" in line and line[0] != "#"}
    # an empty label value equals an absent label
    cleaned = 'policy_name="clean",policy_namespace="team",policy_type="CleanupPolicy"'
    cleaned += ',resource_kind="Pod",resource_namespace="team"'
    deleted = 'policy_name="delete",policy_namespace="",policy_type="DeletingPolicy"'
    deleted += ',resource="pods",resource_namespace="team"'
    ended = 'resource_group="",resource_namespace="team",resource_resource="pods",resource_version="v1"'
    assert {
        f'kyverno_cleanup_controller_deletedobjects_total{{deletion_propagation="Orphan",{cleaned}}}',
        f'kyverno_cleanup_controller_errors_total{{deletion_propagation="",{cleaned}}}',
        f'kyverno_deleting_controller_deletedobjects_total{{deletion_propagation="",{deleted}}}',
        f"kyverno_ttl_controller_deletedobjects_total{{{ended}}}",
        'kyverno_ttl_controller_info{resource_group="",resource_resource="pods",resource_version="v1"}',
    } == found
