"""A definition for tests that uses every feature of schemas."""

from __future__ import annotations

from pyverno.kube.json import JSONObject

SPEC: JSONObject = {
    "type": "object",
    "required": ["size"],
    "properties": {
        "size": {"type": "integer", "minimum": 1},
        "color": {"type": "string", "default": "red"},
        "fixed": {
            "type": "string",
            "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "fixed is immutable"}],
        },
        "tags": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "pod": {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True},
    },
    "x-kubernetes-validations": [{"rule": "self.size < 9", "message": "too large"}],
}
STATUS: JSONObject = {"type": "object", "properties": {"n": {"type": "integer"}}}
NAMES: JSONObject = {"kind": "Widget", "plural": "widgets", "singular": "widget", "listKind": "WidgetList"}


def version(name: str, **more: object) -> JSONObject:
    """One version of the definition."""
    schema = {"type": "object", "properties": {"spec": SPEC, "status": STATUS}}
    return {"name": name, "served": True, "storage": False, "schema": {"openAPIV3Schema": schema}, **more}


def widgets(*versions: JSONObject, **spec: object) -> JSONObject:
    """The definition; by default one version with a status."""
    given = versions or (version("v1", storage=True, subresources={"status": {}}),)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.ex.io"},
        "spec": {"group": "ex.io", "scope": "Namespaced", "names": NAMES, "versions": list(given), **spec},
    }


def widget(spec: JSONObject | None = None, **more: object) -> JSONObject:
    """An object of the definition."""
    body: JSONObject = {"apiVersion": "ex.io/v1", "kind": "Widget", "metadata": {"name": "w"}}
    return {**body, "spec": {"size": 1} if spec is None else spec, **more}
