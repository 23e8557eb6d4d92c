"""Reading a pod out of a resource."""

import pytest

from pyverno.errors import DocumentError
from pyverno.podsecurity.pod import POD_KINDS, read_pod

_CONTROLLERS = sorted(POD_KINDS - {"Pod", "CronJob"})
_SPEC = {"hostPID": True, "containers": [{"name": "a", "image": "i"}]}


@pytest.mark.parametrize("kind", _CONTROLLERS)
def test_a_controller_is_read_through_its_template(kind):
    """Metadata is the template's, not the controller's."""
    template = {"metadata": {"annotations": {"a": "inner"}}, "spec": _SPEC}
    pod = read_pod({"metadata": {"annotations": {"a": "outer"}}, "spec": {"template": template}}, kind)
    assert (pod.host_namespaces, pod.annotations) == (("hostPID",), {"a": "inner"})


def test_a_cron_job_takes_annotations_from_the_pod_template():
    """Those of the job template never reach a pod."""
    job = {
        "metadata": {"annotations": {"a": "job"}},
        "spec": {"template": {"metadata": {"annotations": {"a": "pod"}}, "spec": _SPEC}},
    }
    pod = read_pod({"spec": {"jobTemplate": job}}, "CronJob")
    assert (pod.host_namespaces, pod.annotations) == (("hostPID",), {"a": "pod"})


@pytest.mark.parametrize("kind", sorted(POD_KINDS))
def test_a_missing_template_is_an_empty_pod(kind):
    """Kubernetes decodes absent fields as zero values."""
    assert read_pod({}, kind).containers == ()


@pytest.mark.parametrize("kind", ["Service", "", "pod", "PodTemplate"])
def test_a_kind_without_a_pod_is_an_error(kind):
    """The kind is compared case-sensitively."""
    with pytest.raises(DocumentError, match="could not find correct resource type"):
        read_pod({}, kind)


def test_a_resource_that_is_no_object_is_an_error():
    """Such a value must not count as an empty pod."""
    with pytest.raises(DocumentError):
        read_pod([], "Pod")


def test_containers_come_in_the_order_of_kubernetes():
    """Init containers first, ephemeral containers last."""
    lists = ("containers", "ephemeralContainers", "initContainers")
    pod = read_pod({"spec": {name: [{"name": name}] for name in lists}}, "Pod")
    assert [each.name for each in pod.containers] == ["initContainers", "containers", "ephemeralContainers"]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ([], "array into Go struct field Pod.spec of type v1.PodSpec"),
        ({"hostPID": "true"}, "string into Go struct field Pod.spec.hostPID of type bool"),
        ({"hostNetwork": 1}, "number into Go struct field Pod.spec.hostNetwork of type bool"),
        ({"containers": {}}, "object into Go struct field Pod.spec.containers of type []v1.Container"),
        ({"containers": ["a"]}, "string into Go struct field Pod.spec.containers of type v1.Container"),
        (
            {"initContainers": [{"securityContext": {"privileged": "yes"}}]},
            "string into Go struct field Pod.spec.initContainers.securityContext.privileged of type bool",
        ),
        (
            {"containers": [{"ports": [{"hostPort": True}]}]},
            "bool into Go struct field Pod.spec.containers.ports.hostPort of type int32",
        ),
        (
            {"containers": [{"ports": [{"hostPort": 80.5}]}]},
            "number 80.5 into Go struct field Pod.spec.containers.ports.hostPort of type int32",
        ),
        (
            {"securityContext": {"runAsUser": "0"}},
            "string into Go struct field Pod.spec.securityContext.runAsUser of type int64",
        ),
        (
            {"containers": [{"securityContext": {"capabilities": {"add": "ALL"}}}]},
            "string into Go struct field Pod.spec.containers.securityContext.capabilities.add of type []v1.Capability",
        ),
        (
            {"containers": [{"securityContext": {"capabilities": {"drop": [1]}}}]},
            "number into Go struct field Pod.spec.containers.securityContext.capabilities.drop of type v1.Capability",
        ),
    ],
)
def test_a_field_of_the_wrong_type_is_an_error(spec, expected):
    """An unreadable field must never count as an unset one."""
    with pytest.raises(DocumentError) as raised:
        read_pod({"spec": spec}, "Pod")
    assert raised.value.message == f"json: cannot unmarshal {expected}"


def test_the_error_names_the_place_inside_a_cron_job():
    """The path runs through both templates."""
    job = {"spec": {"template": {"spec": {"hostIPC": []}}}}
    with pytest.raises(DocumentError) as raised:
        read_pod({"spec": {"jobTemplate": job}}, "CronJob")
    assert "CronJob.spec.jobTemplate.spec.template.spec.hostIPC" in raised.value.message


@pytest.mark.parametrize("annotations", [{"a": 1}, {"a": True}, {"a": {}}])
def test_annotations_are_texts(annotations):
    """A number is not turned into text."""
    with pytest.raises(DocumentError):
        read_pod({"metadata": {"annotations": annotations}}, "Pod")


def test_null_is_unset_everywhere():
    """Kubernetes reads null as the zero value."""
    security = dict.fromkeys(
        ("privileged", "runAsUser", "procMount", "seccompProfile", "capabilities", "windowsOptions")
    )
    container = {"name": None, "ports": [None], "securityContext": security, "lifecycle": None, "livenessProbe": None}
    pod = read_pod(
        {
            "metadata": {"annotations": {"a": None}},
            "spec": {"containers": [container, None], "volumes": [None], "os": None, "hostPID": None},
        },
        "Pod",
    )
    assert [each.name for each in pod.containers] == ["", ""]


def test_whole_floats_are_numbers():
    """Documents that went through JSON in Go hold every number as a float."""
    pod = read_pod({"spec": {"containers": [{"ports": [{"hostPort": 80.0}]}]}}, "Pod")
    assert pod.containers[0].host_ports == ((0, 80),)
