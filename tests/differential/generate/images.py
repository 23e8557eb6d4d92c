"""Policies about images that need no registry: image variables, digests of references."""

from __future__ import annotations

from random import Random

from pyverno.kube.json import JSON, JSONObject
from tests.differential.generate.clusterpolicies import cluster_policy
from tests.differential.generate.draws import chance, some
from tests.differential.generate.expressions import conditions, expression

__all__ = ["image_policy"]

_GLOBS = (
    "*",
    "nginx*",
    "ghcr.io/*",
    "docker.io/*",
    "docker.io/library/nginx:*",
    "*/team/*",
    "quay.io/acme/db:10-alpine",
)


def image_policy(random: Random, name: str, sample: JSONObject) -> JSONObject:
    """Return a ClusterPolicy whose rules read the variable `images`, or check references of images."""
    kind = sample["kind"]
    rules = []
    for index in range(random.randint(1, 3)):
        rule: JSONObject = {"name": f"v{index}", "match": {"any": [{"resources": {"kinds": [kind]}}]}}
        if chance(random, 0.6):
            rule["validate"] = _about_images(random, sample)
        else:
            rule["verifyImages"] = [_reference_check(random)]
        rules.append(rule)
    return cluster_policy(name, rules)


def _about_images(random: Random, sample: JSONObject) -> JSONObject:
    variable: JSONObject = {
        group: {
            container["name"]: {
                "registry": "docker.io", "path": "library/nginx", "name": "nginx", "tag": "latest",
                "reference": "docker.io/library/nginx:latest", "referenceWithTag": "docker.io/library/nginx:latest",
            }
            for container in sample.get("spec", {}).get(group, ())
        }
        for group in ("containers", "initContainers")
        if sample.get("spec", {}).get(group)
    }  # fmt: skip
    shown: JSON = variable or {"containers": {"c0": {"tag": "latest"}}}
    return {
        "message": "found {{ to_string(" + expression(random, "images", shown, depth=1) + ") }}",
        "deny": {"conditions": conditions(random, "images", shown)},
    }


def _reference_check(random: Random) -> JSONObject:
    found: JSONObject = {
        "imageReferences": some(random, _GLOBS, 1, 2),
        "mutateDigest": False,
        "verifyDigest": chance(random, 0.7),
        "required": chance(random, 0.5),
    }
    if chance(random, 0.3):
        found["skipImageReferences"] = [random.choice(_GLOBS)]
    return found
