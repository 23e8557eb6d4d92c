"""Examples as whole scenarios: policies with every input that their review needs, from the demo's manifests.

The controls of the policy library are examples too; they need only policies and resources.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from pyverno.errors import UsageError
from pyverno.kube.json import JSONObject
from pyverno.kube.yaml.documents import load_documents
from pyverno.offline.files import read_file
from pyverno.policy.kinds import is_policy

__all__ = ["demo_root", "list_scenarios", "read_scenario"]

_FOLDER: Final = "scenarios/"
_SEPARATOR: Final = "---\n"
_LIMIT: Final = "cluster/replica-limit-policy.yaml"

_SCENARIOS: Final[Mapping[str, tuple[str, Mapping[str, Sequence[str]]]]] = {
    "require-labels": (
        "A rule for Pods denies a Deployment without a team",
        {"policies": ["policies/require-labels.yaml"], "resources": ["deployment.yaml"]},
    ),
    "add-labels": (
        "A label is added where it is missing",
        {"policies": ["policies/add-labels.yaml"], "resources": ["redis.yaml"]},
    ),
    "pre-stop": (
        "A sleep before the stop and a computed grace period, by the label of a namespace",
        {"policies": ["policies/pre-stop.yaml"], "resources": ["web.yaml"], "values": ["values.yaml"]},
    ),
    "sync-secrets": (
        "A new Namespace gets its copy of a Secret",
        {
            "policies": ["policies/sync-secrets.yaml"],
            "resources": ["cluster/mytestns.yaml"],
            "clusterResources": ["cluster/regcred.yaml"],
        },
    ),
    "namespace-defaults": (
        "A new Namespace gets a NetworkPolicy and a RoleBinding for its owner",
        {"policies": ["policies/namespace-defaults.yaml"], "resources": ["cluster/team.yaml"]},
    ),
    "replica-limit": (
        "A ValidatingAdmissionPolicy whose bindings choose the parameter by the label of a namespace",
        {
            "policies": [_LIMIT],
            "resources": ["playground/replicas.yaml"],
            "clusterResources": [_LIMIT],
            "crds": ["cluster/replica-limit.yaml"],
        },
    ),
    "argo-clusters": (
        "Argo CD gets a Secret for every Cluster of Cluster API",
        {
            "policies": ["policies/argo-clusters.yaml"],
            "resources": ["cluster/prod.yaml"],
            "clusterResources": ["cluster/prod-kubeconfig.yaml"],
            "crds": ["cluster/fleet.yaml"],
        },
    ),
    "restart": (
        "A Deployment restarts when its ConfigMap changes",
        {
            "policies": ["policies/restart.yaml"],
            "resources": ["cluster/web-settings.yaml"],
            "oldResources": ["cluster/web.yaml"],
            "clusterResources": ["cluster/web.yaml"],
        },
    ),
}
"""By name: a title, and the files of every text."""


def demo_root() -> Path:
    """Return the folder of the demo's manifests: inside of the installed package, or of the source tree."""
    package = Path(__file__).resolve().parents[2]
    for folder in (package / "demo", package.parents[1] / "docs" / "guide" / "demo"):
        if (folder / "README.md").is_file():
            return folder
    raise UsageError("the examples are missing in this installation: install pyverno again")


def list_scenarios() -> Sequence[JSONObject]:
    """Return name and title of every scenario.

    >>> list_scenarios()[0]["name"]
    'scenarios/require-labels'
    """
    return [{"name": f"{_FOLDER}{name}", "title": title} for name, (title, _) in _SCENARIOS.items()]


def read_scenario(name: str) -> JSONObject | None:
    """Return a scenario with its texts by the names of a review's inputs; None for an unknown name."""
    found = _SCENARIOS.get(name.removeprefix(_FOLDER)) if name.startswith(_FOLDER) else None
    if found is None:
        return None
    title, texts = found
    root = demo_root()
    read = {text: [each for file in files for each in _parts(root / file)] for text, files in texts.items()}
    # a file may mix policies and the objects they read; a review takes each in its own text
    read["policies"] = [each for each in read["policies"] if _is_policy(each)]
    read["clusterResources"] = [each for each in read.get("clusterResources", ()) if not _is_policy(each)]
    return {"name": name, "title": title, **{text: _SEPARATOR.join(parts) for text, parts in read.items()}}


def _parts(path: Path) -> Sequence[str]:
    return read_file(path).decode().split(_SEPARATOR)


def _is_policy(text: str) -> bool:
    return all(is_policy(each.value) for each in load_documents(text))
