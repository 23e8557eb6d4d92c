"""The scenarios of the corpus: finding them, choosing those to run, and the claim of each.

This module must never perform an operation.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from tests.conformance.chainsaw.cluster import INSTALLATIONS, running_cluster
from tests.conformance.chainsaw.scenario import run_scenario
from tests.conformance.outcome import Case, Claim, NotRun

__all__ = ["claim", "find"]

_BUCKET: Final = "chainsaw"
_DEFINITIONS: Final = Path("policies", ".chainsaw", "crds")
_RUN: Final = (
    *("admission-validate", "admission-validate+asserts", "admission-mutate", "policy-validation"),
    *("admission-assert-other", "events", "globalcontext", "reports", "vap-generation", "webhook-config"),
    *("image-registry", "manifest-signature"),
    *("background-cleanup", "background-generate", "background-mutate-existing"),
)
_NOT_RUN: Final[Mapping[str, str]] = {
    "http-service": "needs an HTTP service in the cluster",
    "needs-controllers": "needs further controllers",
}
_SCRIPTS: Final = {
    "kubectl-simple": "",
    "user-kubeconfig": "",
    "kubectl-needs-kubelet": "runs programs in containers",
    "kyverno-config": "changes the installation of Kyverno",
    "kyverno-cli": "runs the command line of Kyverno",
    "other-tools": "runs programs that talk to services of the cluster",
}
_OTHER_CONTROLLERS: Final[Mapping[str, str]] = {
    "kyverno-config": _SCRIPTS["kyverno-config"],
    "runs-workload": _SCRIPTS["kubectl-needs-kubelet"],
}
"""Further needs of scenarios with scripts, by their labels."""
_WORKFLOW: Final = "needs an image and a ConfigMap that upstream's workflow makes with public services"
_VERSION: Final = "1.35"
_NEEDS_NEWER: Final = ("/generate-mutating-admission-policy-v1/", "/mutating-admission-policy-reports-v1/")
_NEWER: Final = "1.36"
"""The version of Kubernetes, and the one that has stable MutatingAdmissionPolicies, with scenarios that need them."""
_NEEDS_KUBELET: Final = ("chainsaw/reports/admission/update",)
"""Scenarios that wait for pods to be ready, by the ends of their ids; elsewhere pods stay as they are created."""
_BY_CLOCK: Final = frozenset({"cleanup", "ttl-cleanup"})
"""Labels of scenarios that wait for the clock."""
_CONFIGURES: Final = tuple(f"{each}/cleanup-empty-replicasets/.chainsaw-test" for each in ("cleanup", "cleanup-dpol"))
"""Scenarios with scripts that change the ConfigMap alone, which we do as well."""
_API_ONLY: Final = "/standard/rollback-image-verification"
"""The scenario whose script only talks to the API server, although the like of it need a node elsewhere."""
_OF_OTHERS: Final[Mapping[str, str]] = {
    "/custom-sigstore/standard/basic": _WORKFLOW,
    "/custom-sigstore/standard/basic-deprecated": _WORKFLOW,
    "chainsaw/lease/admission-controller": "asserts on the pods of Kyverno",
    "chainsaw/lease/cleanup-controller": "asserts on the pods of Kyverno",
    "chainsaw/ttl/propagation-policy/foreground": _SCRIPTS["kubectl-needs-kubelet"],
    "chainsaw/ttl/propagation-policy/orphan": _SCRIPTS["kubectl-needs-kubelet"],
}
"""Scenarios of classes that are run which need what is not there, by the ends of their ids."""


def find(root: Path) -> Iterator[Case]:
    """Yield the scenarios of the manifest."""
    manifest = root / _BUCKET / "manifest.jsonl"
    for line in manifest.read_text().splitlines() if manifest.is_file() else ():
        record = json.loads(line)
        yield Case(_BUCKET, record["class"], f"{_BUCKET}/{record['id']}", record)


def claim(case: Case, root: Path) -> Claim:
    """Perform one scenario: no step may fail."""
    record = case.data
    _leave_out(record)
    definitions = (root / _BUCKET / _DEFINITIONS).resolve()
    there = definitions if definitions.is_dir() else None
    version = _NEWER if any(part in record["id"] for part in _NEEDS_NEWER) else _VERSION
    thread = running_cluster(there, _configuration(record), version, record["id"].endswith(_NEEDS_KUBELET))
    thread.cluster.replaced.clear()
    thread.cluster.moves_clock = bool(_BY_CLOCK & set(record.get("labels") or ()))
    path = (root / _BUCKET / record["repo"] / record["path"]).resolve()
    try:
        failed = thread.run(run_scenario(thread.cluster, path), case.id)
        return Claim([], failed, replaced=tuple(sorted(thread.cluster.replaced)))
    except Exception:
        # what this scenario left behind must not disturb the next one
        running_cluster.cache_clear()
        raise


def _leave_out(record: dict[str, Any]) -> None:
    if record["quarantined"]:
        raise NotRun("quarantined upstream")
    if record["skip"]:
        raise NotRun("skipped upstream")
    why = next((text for end, text in _OF_OTHERS.items() if record["id"].endswith(end)), "")
    if why:
        raise NotRun(why)
    if record["class"] == "script":
        _leave_out_scripts(record)
    elif record["class"] not in _RUN:
        raise NotRun(_NOT_RUN.get(record["class"], f"class {record['class']} is not run"))
    if _configuration(record) not in INSTALLATIONS:
        raise NotRun(f"needs the installation `{_configuration(record)}`")


def _leave_out_scripts(record: dict[str, Any]) -> None:
    if record["id"].endswith((*_CONFIGURES, _API_ONLY)):
        if shutil.which("kubectl") is None:
            raise NotRun("needs the programs kubectl")
        return
    if record["external_scripts"]:
        raise NotRun("calls a script that the corpus does not have")
    why = _SCRIPTS.get(record["script_kind"], "runs scripts")
    why = why or next((text for label, text in _OTHER_CONTROLLERS.items() if label in record["labels"]), "")
    if not all(name.startswith("registry:") for name in record["network"]):
        why = why or "reads scripts or services from the network"
    missing = [tool for tool in record["tools"] if shutil.which(tool) is None]
    if why or missing:
        raise NotRun(why or f"needs the programs {', '.join(missing)}")


def _configuration(record: dict[str, Any]) -> str:
    found = str((record["ci"] or {}).get("kyverno_configs") or "standard")
    return "standard" if found.startswith("${{") else found  # a matrix of them: each has to do
