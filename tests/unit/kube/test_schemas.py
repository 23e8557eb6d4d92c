"""The schemas on board: merge keys and complete definitions of every Kubernetes version."""

from __future__ import annotations

from pyverno.kube.schemas import VERSIONS, descriptions, go_fields, merge_table, schema_set

CONTAINER = "io.k8s.api.core.v1.Container"
POD_SPEC = "io.k8s.api.core.v1.PodSpec"


def test_merge_keys_of_containers_and_their_lists() -> None:
    """Lists merge by the keys that Kubernetes' API marks."""
    table = merge_table()
    keys = {name: table.field(POD_SPEC, name) for name in ("containers", "hostAliases", "topologySpreadConstraints")}
    assert {
        "containers": ("name",),
        "hostAliases": ("ip",),
        "topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"),
    } == {name: field.keys for name, field in keys.items() if field}
    ports = table.field(CONTAINER, "ports")
    assert ports is not None
    assert (("containerPort", "protocol"), True) == (ports.keys, ports.is_merged_list)
    assert table.field(POD_SPEC, "tolerations") is None


def test_lists_of_scalars_merge_without_keys() -> None:
    """Finalizers merge by value."""
    field = merge_table().field("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta", "finalizers")
    assert field is not None
    assert ((), True) == (field.keys, field.is_merged_list)


def test_kinds_resolve_also_in_versions_no_longer_served() -> None:
    """A known kind in an unknown version counts as its newest version; unknown kinds have no type."""
    table = merge_table()
    assert "io.k8s.api.batch.v1.CronJob" == table.type_of("batch", "v1beta1", "CronJob")
    assert "io.k8s.api.core.v1.Pod" == table.type_of("", "v1", "Pod")
    assert table.type_of("example.com", "v1", "Pod") is None


def test_every_version_has_complete_schemas() -> None:
    """Definitions keep types, references and x-kubernetes marks, and lose descriptions."""
    for version in VERSIONS:
        schemas = schema_set(version)
        deployment = schemas.find("apps", "v1", "Deployment")
        assert deployment is not None
        assert "io.k8s.api.apps.v1.DeploymentSpec" in str(deployment["properties"]["spec"])
        ports = schemas.definitions[CONTAINER]["properties"]["ports"]
        assert ["containerPort", "protocol"] == ports["x-kubernetes-list-map-keys"]
        assert "description" not in ports
    properties = schema_set("1.30").definitions[
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"
    ]
    assert "description" in properties["properties"]


def test_unknown_versions_take_the_nearest() -> None:
    """Older and newer clusters get the closest schemas on board."""
    assert ("1.25", "1.37", "1.30") == tuple(schema_set(text).version for text in ("1.20", "v1.99", "v1.30.4"))
    assert schema_set("1.30").find("example.com", "v1", "Thing") is None


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


def test_marks_distinguish_pointers_from_values() -> None:
    """A pointer keeps its zero, a value does not."""
    container = go_fields("io.k8s.api.core.v1.Container")
    marks = {name: container[name].mark for name in ("name", "image", "resources", "livenessProbe")}
    assert {"name": "never", "image": "zero", "resources": "struct", "livenessProbe": "nil"} == marks
    assert "VolumeSource" == go_fields("io.k8s.api.core.v1.Volume")["secret"].embedded


def test_an_unknown_type_has_no_fields() -> None:
    """Types of newer versions are read without marks."""
    assert {} == go_fields("io.k8s.api.core.v9.Nothing")


def test_every_version_explains_its_fields() -> None:
    """The text comes from that version's documentation."""
    assert all(descriptions(version, POD_SPEC)["containers"] for version in VERSIONS)
    assert "resourceClaims" in descriptions("1.35", POD_SPEC)
    assert "resourceClaims" not in descriptions("1.25", POD_SPEC)


def test_what_is_not_known_is_not_explained() -> None:
    """Unknown versions and types have no explanation."""
    assert {} == descriptions("1.10", POD_SPEC)
    assert {} == descriptions("1.35", "io.k8s.Nothing")
