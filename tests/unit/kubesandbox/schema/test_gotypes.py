"""Tests of `schema.gotypes`."""

from __future__ import annotations

from kubesandbox.schema.gotypes import go_fields
from pyverno.kube.schemas import schema_set


def test_every_field_of_kubernetes_1_35_is_in_the_table() -> None:
    """The table was made from the modules of that version."""
    definitions = schema_set("1.35").definitions
    missing = [
        f"{name}.{field}"
        for name, body in definitions.items()
        for field in body.get("properties", {})
        if field not in go_fields(name) and field not in ("kind", "apiVersion")
    ]
    assert [] == [name for name in missing if ".v1alpha1." not in name and ".v1beta1." not in name]


def test_marks_tell_pointers_from_values() -> None:
    """A pointer keeps its zero, a value does not."""
    container = go_fields("io.k8s.api.core.v1.Container")
    marks = {name: container[name].mark for name in ("name", "image", "resources", "livenessProbe")}
    assert {"name": "never", "image": "zero", "resources": "struct", "livenessProbe": "nil"} == marks
    assert "VolumeSource" == go_fields("io.k8s.api.core.v1.Volume")["secret"].embedded


def test_an_unknown_type_has_no_fields() -> None:
    """Types of newer versions are read without marks."""
    assert {} == go_fields("io.k8s.api.core.v9.Nothing")
