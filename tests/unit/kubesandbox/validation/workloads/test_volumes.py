"""Tests of `validation.volumes`."""

from __future__ import annotations

from kubesandbox.validation.workloads.volumes import VOLUME_SOURCES, volumes_errors
from pyverno.kube.schemas import schema_set
from pyverno.kube.status import FieldError


def test_every_source_of_the_schema_is_known() -> None:
    """A source that is not known would be `must specify a volume type`."""
    definitions = schema_set("1.35").definitions
    pods = set(definitions["io.k8s.api.core.v1.Volume"]["properties"]) - {"name"}
    assert pods == set(VOLUME_SOURCES)


def test_only_good_volumes_can_be_mounted() -> None:
    """A mount of a wrong volume is an error of its own."""
    errors: list[FieldError] = []
    volumes = [{"name": "a", "emptyDir": {}}, {"name": "b"}, {"name": "a", "emptyDir": {}}]
    assert {"a"} == volumes_errors(volumes, "v", errors)
    assert ["v[1]: Required value: must specify a volume type", 'v[2].name: Duplicate value: "a"'] == list(
        map(str, errors)
    )
