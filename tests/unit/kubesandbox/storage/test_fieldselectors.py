"""Field selectors select objects, and unsupported ones are refused."""

from __future__ import annotations

import pytest

from kubesandbox.storage.fieldselectors import compile_field_selector
from kubesandbox.types.resources import ResourceType, builtin_table
from pyverno.kube.status import StatusError

TABLE = builtin_table("1.35")
WIDGETS = ResourceType("x.io", "v1", "widgets", "Widget", "widget", namespaced=False, crd="widgets.x.io")


def type_of(group: str, plural: str) -> ResourceType:
    """Return a built-in type."""
    found = TABLE.find(group, "v1", plural)
    assert found is not None
    return found


PODS = type_of("", "pods")
POD = {
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {"nodeName": "n1", "restartPolicy": "Always"},
    "status": {"phase": "Running", "podIPs": [{"ip": "10.0.0.1"}, {"ip": "::1"}]},
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", True),
        ("metadata.name=web", True),
        ("metadata.name==web,metadata.namespace=shop", True),
        ("metadata.name=web,metadata.namespace!=shop", False),
        ("spec.nodeName!=", True),
        ("spec.nodeName=", False),
        ("status.nominatedNodeName=", True),
        ("spec.hostNetwork=false", True),
        ("status.podIPs=10.0.0.1\\,::1", True),
        (",status.phase=Running,", True),
        ("status.phase!=Running", False),
    ],
)
def test_pods_are_selected_by_their_fields(text: str, expected: bool) -> None:
    """Equal, not equal, several terms, escapes; what is missing is the empty text."""
    assert expected is compile_field_selector(text, PODS)(POD)


@pytest.mark.parametrize(
    ("group", "plural", "text", "message"),
    [
        ("", "pods", "spec.foo=1", "field label not supported: spec.foo"),
        ("", "pods", "spec.nodeName", "invalid selector: 'spec.nodeName'; can't understand 'spec.nodeName'"),
        ("", "pods", "metadata.name=\\x", "invalid field selector: invalid escape sequence: \\x"),
        ("", "pods", "metadata.name=a=b", "invalid field selector: unescaped character in value: 61"),
        ("", "namespaces", "metadata.namespace=x", "field label not supported: metadata.namespace"),
        (
            "apps",
            "deployments",
            "spec.replicas=1",
            '"spec.replicas" is not a known field selector: only "metadata.name", "metadata.namespace"',
        ),
        ("batch", "jobs", "x.y=1", 'field label "x.y" not supported for Job'),
        (
            "resource.k8s.io",
            "resourceslices",
            "x.y=1",
            "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: x.y",
        ),
    ],
)
def test_what_can_not_be_selected_by_is_refused(group: str, plural: str, text: str, message: str) -> None:
    """The answer is 400 with the API server's text."""
    with pytest.raises(StatusError) as caught:
        compile_field_selector(text, type_of(group, plural))
    assert (400, "BadRequest", message) == (caught.value.status, caught.value.reason, str(caught.value))


def test_events_of_both_groups_are_selected_alike() -> None:
    """One store holds both; each group has its own field names."""
    core = {"involvedObject": {"name": "web", "uid": "u"}, "source": {"component": "kubelet"}, "type": "Normal"}
    new = {"regarding": {"name": "web", "uid": "u"}, "reportingController": "kubelet", "type": "Normal"}
    events = compile_field_selector("involvedObject.uid=u,source=kubelet,type=Normal", type_of("", "events"))
    regarding = compile_field_selector("regarding.name=web", type_of("events.k8s.io", "events"))
    assert [True, True, True, True] == [events(core), events(new), regarding(core), regarding(new)]


def test_custom_resources_are_selected_by_what_they_declare() -> None:
    """Selectable fields of the definition count, with their JSON type as text."""
    selected = compile_field_selector("spec.size=3,spec.on=true", WIDGETS, ("spec.size", ".spec.on"))
    assert selected({"spec": {"size": 3, "on": True}})
    assert not selected({"spec": {"size": 4, "on": True}})
    with pytest.raises(StatusError, match="field label not supported"):
        compile_field_selector("metadata.namespace=x", WIDGETS)


def test_jobs_and_services_have_fields_of_their_own() -> None:
    """Numbers that are not there read as zero."""
    assert compile_field_selector("status.successful=0", type_of("batch", "jobs"))({})
    assert compile_field_selector("spec.type=ClusterIP", type_of("", "services"))({"spec": {"type": "ClusterIP"}})
