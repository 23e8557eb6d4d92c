"""The two groups of kinds that hold the results of policies: PolicyReports and OpenReports."""

from __future__ import annotations

from typing import Final, NamedTuple

from pyverno.kube.gvk import GVR

__all__ = ["OPENREPORTS", "POLICY_REPORTS", "ReportApi"]


class ReportApi(NamedTuple):
    """A group of report kinds: resources and kinds for objects of namespaces, and for the others."""

    api_version: str
    namespaced: GVR
    cluster: GVR
    namespaced_kind: str
    cluster_kind: str

    def resource(self, namespace: str) -> GVR:
        """Return the resource of reports about objects of a namespace ("" = cluster-scoped ones)."""
        return self.namespaced if namespace else self.cluster


POLICY_REPORTS: Final = ReportApi(
    "wgpolicyk8s.io/v1alpha2",
    GVR("wgpolicyk8s.io", "v1alpha2", "policyreports"),
    GVR("wgpolicyk8s.io", "v1alpha2", "clusterpolicyreports"),
    "PolicyReport",
    "ClusterPolicyReport",
)
OPENREPORTS: Final = ReportApi(
    "openreports.io/v1alpha1",
    GVR("openreports.io", "v1alpha1", "reports"),
    GVR("openreports.io", "v1alpha1", "clusterreports"),
    "Report",
    "ClusterReport",
)
