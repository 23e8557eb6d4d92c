"""The generated files of the chart `pyverno-policies`: the policies of the library, in both dialects."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import yaml

from scripts.charts.schema import schema

__all__ = ["HINTS", "policy_files"]

_LIBRARY: Final = Path(__file__).resolve().parents[2] / "policies"
_LEVELS: Final = "pod-security/levels"

_CATEGORIES: Final = ("pod-security", "best-practices")
_EXCEPTIONS: Final = "use PolicyExceptions of policies.kyverno.io, or policyType ClusterPolicy with policyExclude"

HINTS: Final = {
    "policyKind": "all policies are for the whole cluster: remove the value",
    "vpolExclude": _EXCEPTIONS,
    "vpolExcludeByPolicy": _EXCEPTIONS,
    "kyvernoVersion": "the chart fits the controllers of its version: remove the value",
    "kubeVersionOverride": "the policies do not depend on the version of Kubernetes: remove the value",
}
"""Keys of Kyverno's chart that are refused, with what to do instead."""


def policy_files(folder: Path) -> dict[Path, str]:
    """Return the generated files with their texts."""
    chart = folder / "pyverno-policies"
    index: dict[str, Any] = {}
    found: dict[Path, str] = {}
    for path in sorted(_LIBRARY.rglob("*policy.yaml")):
        policy = yaml.load(path.read_bytes(), Loader=yaml.CSafeLoader)
        category = str(path.parent.parent.relative_to(_LIBRARY)).removeprefix("cel/")
        is_ours = category.partition("/")[0] in _CATEGORIES and category != _LEVELS  # a level repeats its folder
        if policy["kind"] not in ("ClusterPolicy", "ValidatingPolicy") or not is_ours:
            continue
        name = policy["metadata"]["name"]
        entry = index.setdefault(name, {"category": category, "types": []})
        entry["types"].append(policy["kind"])
        text = json.dumps(policy, separators=(",", ":"), ensure_ascii=False) + "\n"
        found[chart / "files" / policy["kind"] / f"{name}.json"] = text
    found[chart / "files" / "index.json"] = json.dumps(dict(sorted(index.items())), indent=1) + "\n"
    found[chart / "files" / "hints.json"] = json.dumps(HINTS, indent=1) + "\n"
    values = yaml.safe_load((chart / "values.yaml").read_text(encoding="utf-8"))
    found[chart / "values.schema.json"] = json.dumps(schema(values, HINTS), indent=1) + "\n"
    return found
