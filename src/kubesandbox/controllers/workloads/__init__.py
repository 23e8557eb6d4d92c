"""Controllers of workloads: Deployments, ReplicaSets, StatefulSets, DaemonSets, Jobs, CronJobs, disruption budgets."""

from __future__ import annotations
