"""Rendering the charts with the Helm SDK, and the golden renders of the chart `pyverno`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

__all__ = ["CHARTS", "RENDERS", "golden_text", "render"]

CHARTS = Path(__file__).resolve().parents[2] / "deploy" / "charts"
_CHART = CHARTS / "pyverno"


def _file(name: str) -> dict[str, Any]:
    return yaml.safe_load((_CHART / name).read_text(encoding="utf-8"))


_NO_VIEW = {"rbac": {"createViewRoleBinding": False, "coreClusterRole": {"extraResources": []}}}

RENDERS: Mapping[str, dict[str, Any]] = {
    "default": {},
    "split": {"mode": "split"},
    "ha": _file("values-ha.yaml"),
    "openshift": _file("platforms/openshift.yaml"),
    "argocd": _file("platforms/argocd.yaml"),
    "eks": _file("platforms/eks-other-cni.yaml"),
    "cert-manager": {"certManager": {"enabled": True}},
    "minimal-rbac": {
        **{f"{part}Controller": _NO_VIEW for part in ("admission", "background", "reports")},
        "rbac": {"roles": {"aggregate": {"admin": False, "view": False}}},
    },
    "monitoring": {
        "podMonitor": {"enabled": True},
        "prometheusRule": {"enabled": True},
        "grafana": {"enabled": True},
        "admissionController": {"networkPolicy": {"enabled": True}},
        "networkPolicy": {"egress": {"enabled": True}},
    },
    "ui": {
        "existingImagePullSecrets": [{"name": "regcred"}],
        "ui": {
            "enabled": True,
            "publicUrl": "https://policy.example.org",
            "oidc": {
                "issuer": "https://login.example.org",
                "clientId": "pyverno",
                "clientSecretName": "login",
                "usernameClaim": "email",
                "groupsClaim": "groups",
            },
            "allowGroups": ["platform", "security"],
            "metrics": {"enabled": True, "serviceMonitor": {"enabled": True}},
            "extraArgs": {"retention-days": 30},
            "existingClaim": "results",
            "ingress": {"enabled": True, "className": "nginx", "hosts": ["policy.example.org"]},
            "httpRoute": {"enabled": True, "parentRefs": [{"name": "web"}], "hostnames": ["policy.example.org"]},
        },
    },
    "no-hooks": {"global": {"templating": {"enabled": True}}},
}
"""Values by the name of the golden file in tests/deploy/renders."""


def render(values: Mapping[str, Any], chart: str = "pyverno", namespace: str = "kyverno") -> list[dict[str, Any]]:
    """Return the objects of a chart, hooks included, in the order of its templates."""
    return json.loads(_rendered(json.dumps(values), chart, namespace))


@cache
def _rendered(values: str, chart: str, namespace: str) -> str:
    import helm_python

    with helm_python.Chart.load(str(CHARTS / chart)) as loaded:
        texts = loaded.render(json.loads(values), name="kyverno", namespace=namespace)
    found = (yaml.load_all(texts[path], Loader=yaml.CSafeLoader) for path in sorted(texts) if path.endswith(".yaml"))
    return json.dumps([each for objects in found for each in objects if each])


def golden_text(name: str) -> str:
    """Return what a golden file has to hold: all objects of the default, of other values what they change.

    Definitions are shown by name and annotations: the code makes the rest.
    """
    made = _by_name(RENDERS[name])
    if name == "default":
        return yaml.dump_all(made.values(), Dumper=yaml.CSafeDumper, sort_keys=False, width=120)
    default = _by_name(RENDERS["default"])
    changed = [each for key, each in made.items() if default.get(key) != each]
    gone = sorted(default.keys() - made.keys())
    return yaml.dump_all([{"notRendered": gone}, *changed], Dumper=yaml.CSafeDumper, sort_keys=False, width=120)


def _by_name(values: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    found = {}
    for each in render(values):
        shown = each
        if each["kind"] == "CustomResourceDefinition":
            shown = {key: value for key, value in each.items() if key != "spec"}
        elif "dashboard" in each["metadata"]["name"]:
            shown = {**each, "data": sorted(each["data"])}
        found[f"{each['kind']} {each['metadata']['name']}"] = shown
    return found
