"""The settings of the reports controller, from its flags."""

from __future__ import annotations

from collections.abc import Callable

from pyverno.controllers.reports.evaluation import ReportFilter
from pyverno.controllers.runtime.workqueue import Backoff
from pyverno.controllers.state.settings import ControllerSettings
from pyverno.kube.gvk import GVK
from pyverno.value import dataclass, field

__all__ = ["ReportsSettings", "ScanSettings"]


def _take_all(_kind: GVK, _namespace: str, _name: str) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class ScanSettings:
    """Settings of scans.

    `workers` threads evaluate. What reads more than the object is evaluated again every `interval_seconds`. The bodies
    of objects may take `memory_bytes` (0 = no limit); those beyond are read again when they are needed. `takes` tells
    by kind, namespace and name which objects are scanned.
    """

    workers: int = 2
    interval_seconds: float = 3600.0
    memory_bytes: int = 0
    shown: ReportFilter = field(default_factory=ReportFilter)
    takes: Callable[[GVK, str, str], bool] = field(default=_take_all, compare=False)


@dataclass(frozen=True, slots=True)
class ReportsSettings(ControllerSettings):
    """Settings of the reports controller.

    `scans` turns background scans on, `aggregates` the use of ephemeral reports, `stores` the writing of reports.
    `uses_openreports` writes Reports of openreports.io. `skips_filters` scans objects that resourceFilters exclude.
    `validating` and `mutating` scan with admission policies of Kubernetes that are labelled for it.
    Ephemeral reports of one object are collected for `collect_seconds` before they are merged.
    """

    qps: float = 300
    burst: int = 300
    scan: ScanSettings = field(default_factory=ScanSettings)
    scans: bool = True
    aggregates: bool = True
    stores: bool = True
    uses_openreports: bool = False
    checks_definitions: bool = True
    skips_filters: bool = True
    validating: bool = True
    mutating: bool = False
    workers: int = 10
    settle_seconds: float = 0.5
    collect_seconds: float = 1.0
    backoff: Backoff = field(default_factory=lambda: Backoff(first=0.5, longest=60.0))
