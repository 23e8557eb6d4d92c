"""`pyverno controller`: the controllers as processes, as a Deployment runs them.

Each controller has a module of flags and a module of work; `services.py` has the parts that all processes share.
"""

from __future__ import annotations

from pyverno.cli.args.groups import group
from pyverno.cli.args.records import command_of
from pyverno.cli.controller.admissionflags import AdmissionFlags
from pyverno.cli.controller.backgroundflags import BackgroundFlags
from pyverno.cli.controller.cleanupflags import CleanupFlags
from pyverno.cli.controller.release import ReleaseFlags
from pyverno.cli.controller.reportsflags import ReportsFlags

__all__ = ["controller"]


def _admission(flags: AdmissionFlags) -> None:
    from pyverno.cli.controller.admission import run_admission

    run_admission(flags)


def _background(flags: BackgroundFlags) -> None:
    from pyverno.cli.controller.background import run_background

    run_background(flags)


def _cleanup(flags: CleanupFlags) -> None:
    from pyverno.cli.controller.cleanup import run_cleanup

    run_cleanup(flags)


def _reports(flags: ReportsFlags) -> None:
    from pyverno.cli.controller.reports import run_reports

    run_reports(flags)


def _release(flags: ReleaseFlags) -> None:
    from pyverno.cli.controller.release import run_release

    run_release(flags)


controller = group(
    "controller",
    "Run a controller in, or beside, a cluster.",
    command_of(
        "admission",
        "Review the admission requests of a cluster, and maintain its webhook configurations.",
        AdmissionFlags,
        _admission,
        examples=(
            "pyverno controller admission",
            "pyverno controller admission --kubeconfig ~/.kube/config --serverIP 192.0.2.1:9443",
        ),
    ),
    command_of(
        "background",
        "Work on UpdateRequests: generate objects and change existing ones as policies require.",
        BackgroundFlags,
        _background,
        examples=(
            "pyverno controller background",
            "pyverno controller background --kubeconfig ~/.kube/config --genWorkers 20",
        ),
    ),
    command_of(
        "cleanup",
        "Delete objects on the schedules of policies, and when their time to live is over.",
        CleanupFlags,
        _cleanup,
        examples=(
            "pyverno controller cleanup",
            "pyverno controller cleanup --kubeconfig ~/.kube/config --dryRun",
        ),
    ),
    command_of(
        "reports",
        "Scan what exists, and write reports of the results of policies.",
        ReportsFlags,
        _reports,
        examples=(
            "pyverno controller reports",
            "pyverno controller reports --kubeconfig ~/.kube/config --backgroundScanInterval 30m",
        ),
    ),
    command_of(
        "release",
        "Stop the controllers and delete their webhook configurations, so that the cluster works without them.",
        ReleaseFlags,
        _release,
        examples=("pyverno controller release --kubeconfig ~/.kube/config",),
    ),
    examples=(
        "pyverno controller admission",
        "pyverno controller background",
        "pyverno controller cleanup",
        "pyverno controller reports",
    ),
)
