"""The generated files of the chart `pyverno`: definitions, facts of the controllers, flags, the schema of its values.

Templates hold the shape of objects; permissions, ports, probes, mounts and flags come from `pyverno.install` and from
the commands, so that the chart cannot drift from what `pyverno install` prints.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from pyverno.cli.controller.command import controller as command
from pyverno.install.background import BACKGROUND
from pyverno.install.cleanup import CLEANUP
from pyverno.install.definitions import definitions
from pyverno.install.manifests import manifests
from pyverno.install.reports import REPORTS
from pyverno.install.settings import InstallSettings
from pyverno.telemetry.instruments import DEFAULT_BUCKETS
from scripts.charts.features import FEATURES, HINTS
from scripts.charts.schema import schema

__all__ = ["NAMESPACE", "controller_files"]

NAMESPACE, IMAGE = "@NAMESPACE@", "@IMAGE@"
"""Placeholders that templates replace."""

_PARTS = ("admission", BACKGROUND.part, REPORTS.part, CLEANUP.part)
_WRITES = frozenset({"create", "update", "patch", "delete"})
_USER_GROUPS = {
    "policies": ("kyverno.io", "policies.kyverno.io"),
    "reports": ("wgpolicyk8s.io", "openreports.io", "reports.kyverno.io"),
}


def controller_files(folder: Path) -> dict[Path, str]:
    """Return the generated files with their texts."""
    chart = folder / "pyverno"
    made = list(definitions())
    found = {chart / "files" / "crds" / f"{_name(each)}.json": _compact(each) for each in made}
    found[chart / "files" / "controllers.json"] = _readable(_facts(made))
    found[chart / "files" / "hints.json"] = _readable(HINTS)
    values = yaml.safe_load((chart / "values.yaml").read_text(encoding="utf-8"))
    found[chart / "values.schema.json"] = _readable(schema(values, HINTS))
    return found


def _facts(made: list[dict[str, Any]]) -> dict[str, Any]:
    objects = [
        each
        for each in manifests(InstallSettings(namespace=NAMESPACE, image=IMAGE, buckets=DEFAULT_BUCKETS))
        if each["kind"] != "CustomResourceDefinition"
    ]
    config = {each["metadata"]["name"]: each["data"] for each in objects if each["kind"] == "ConfigMap"}
    return {
        "controllers": {part: _controller(part, objects) for part in _PARTS},
        "config": config["kyverno"],
        "metricsConfig": config["kyverno-metrics"],
        "userRoles": {
            title: [{"apiGroup": group, "resources": list(_plurals(made, group))} for group in groups]
            for title, groups in _USER_GROUPS.items()
        },
    }


def _controller(part: str, objects: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what the templates need to know of one controller."""
    name, role = f"kyverno-{part}-controller", f"kyverno:{part}-controller"
    of = {(each["kind"], each["metadata"]["name"]): each for each in objects}
    deployment = of["Deployment", name]["spec"]
    pod = deployment["template"]["spec"]
    [container] = pod["containers"]
    rules = of["ClusterRole", f"{role}:core"]["rules"]
    extra = [rule for rule in rules if part == BACKGROUND.part and _is_for_targets(rule)]
    return {
        "labels": deployment["template"]["metadata"]["labels"],
        "selector": deployment["selector"]["matchLabels"],
        "strategy": deployment["strategy"],
        "aggregationRule": of["ClusterRole", role]["aggregationRule"],
        "aggregationLabel": f"rbac.kyverno.io/aggregate-to-{part}-controller",
        "coreRules": [rule for rule in rules if rule not in extra],
        "targetRules": extra,
        "view": ("ClusterRoleBinding", f"{role}:view") in of,
        "namespaceRules": of["Role", role]["rules"],
        "container": {key: container[key] for key in ("env", "volumeMounts", "securityContext", "resources")},
        "probes": {key: value for key, value in container.items() if key.endswith("Probe")},
        "ports": {port["name"]: port["containerPort"] for port in container["ports"]},
        "volumes": pod["volumes"],
        "podSecurityContext": pod["securityContext"],
        "terminationGracePeriodSeconds": pod["terminationGracePeriodSeconds"],
        "features": dict(sorted(_features(part).items())),
    }


def _is_for_targets(rule: Mapping[str, Any]) -> bool:
    """Return whether a rule is there for the kinds that policies generate."""
    return set(rule["verbs"]) >= _WRITES and not any("kyverno.io" in group for group in rule["apiGroups"])


def _features(part: str) -> dict[str, str]:
    """Return the values that become flags of a controller, by the path of the value."""
    known = {option for each in command.commands[part].params for option in each.opts}
    return {path: flag for path, flag in FEATURES.items() if flag in known}


def _plurals(made: list[dict[str, Any]], group: str) -> Iterator[str]:
    for each in made:
        if each["spec"]["group"] == group:
            yield each["spec"]["names"]["plural"]


def _name(definition: Mapping[str, Any]) -> str:
    return str(definition["metadata"]["name"])


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False) + "\n"


def _readable(value: object) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"
