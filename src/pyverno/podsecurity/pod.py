"""The pod inside a resource, read once into the few typed fields that the controls look at.

Reading is strict where Kubernetes is: a field of the wrong type is a DocumentError with Go's own text, so that no
check ever takes an unreadable field for an unset one.
(Kyverno: pkg/engine/handlers/validation, getSpec)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pyverno.errors import DocumentError
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.meter import UNMETERED, Meter
from pyverno.value import dataclass, replace

__all__ = ["POD_KINDS", "Container", "Pod", "SELinuxOptions", "SecurityContext", "Volume", "read_pod"]

_CONTROLLERS = ("DaemonSet", "Deployment", "Job", "StatefulSet", "ReplicaSet", "ReplicationController")

_STEPS_OF_OBJECT = 16

POD_KINDS = frozenset({"Pod", "CronJob", *_CONTROLLERS})
"""The kinds that hold a pod."""


@dataclass(frozen=True, slots=True)
class SELinuxOptions:
    """The SELinux options that are restricted; an unset one is empty."""

    type: str
    user: str
    role: str


@dataclass(frozen=True, slots=True)
class SecurityContext:
    """The security context of a pod or of a container; None means unset."""

    host_process: bool | None = None
    privileged: bool | None = None
    allow_privilege_escalation: bool | None = None
    run_as_non_root: bool | None = None
    run_as_user: int | None = None
    proc_mount: str | None = None
    seccomp_type: str | None = None
    app_armor_type: str | None = None
    selinux: SELinuxOptions | None = None
    added: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    sysctls: tuple[str, ...] = ()
    is_set: bool = True


_UNSET = SecurityContext(is_set=False)


@dataclass(frozen=True, slots=True)
class Container:
    """One container of any of the three lists.

    `host_ports` pairs the index of each port with its host port; `handler_hosts` are the hosts that its probes and
    lifecycle handlers name.
    """

    listed: str
    index: int
    name: str
    image: str = ""
    security: SecurityContext = _UNSET
    host_ports: tuple[tuple[int, int], ...] = ()
    handler_hosts: tuple[str, ...] = ()

    def at(self, path: str) -> str:
        """Return the full path of one of this container's fields.

        >>> Container("containers", 2, "web").at("securityContext.privileged")
        'spec.containers[2].securityContext.privileged'
        """
        return f"spec.{self.listed}[{self.index}].{path}"


@dataclass(frozen=True, slots=True)
class Volume:
    """One volume: its name, the sources that are set, and the path of a host path source."""

    name: str
    sources: frozenset[str]
    host_path: str | None


@dataclass(frozen=True, slots=True)
class Pod:
    """The parts of a pod that the standards check; containers in the order Kubernetes visits them."""

    annotations: dict[str, str]
    host_namespaces: tuple[str, ...]
    is_windows: bool
    security: SecurityContext
    volumes: tuple[Volume, ...]
    containers: tuple[Container, ...]

    def only_pod_level(self) -> Pod:
        """Return this pod with one blank container in place of its containers."""
        return replace(self, containers=(Container("containers", 0, "fake"),))

    def only_containers(self, is_wanted: Callable[[str], bool]) -> Pod:
        """Return a pod that holds nothing but the containers whose image is wanted."""
        kept = tuple(container for container in self.containers if is_wanted(container.image))
        return Pod({}, (), False, _UNSET, (), kept)


class _Reader:
    """Typed access to decoded JSON; `root` names the Go type that the error texts start with.

    `meter` is charged for every item of a list before it is read.
    """

    __slots__ = ("meter", "root")

    def __init__(self, root: str, meter: Meter) -> None:
        self.root = root
        self.meter = meter

    def fail(self, value: JSON, where: str, wanted: str) -> DocumentError:
        return DocumentError(
            f"json: cannot unmarshal {_shape(value)} into Go struct field {self.root}{where} of type {wanted}"
        )

    def object(self, parent: JSONObject, key: str, where: str, wanted: str) -> JSONObject | None:
        value = parent.get(key)
        if value is None or isinstance(value, dict):
            return value
        raise self.fail(value, where + key, wanted)

    def text(self, parent: JSONObject, key: str, where: str) -> str | None:
        value = parent.get(key)
        if value is None or isinstance(value, str):
            return value
        raise self.fail(value, where + key, "string")

    def flag(self, parent: JSONObject, key: str, where: str) -> bool | None:
        value = parent.get(key)
        if value is None or isinstance(value, bool):
            return value
        raise self.fail(value, where + key, "bool")

    def number(self, parent: JSONObject, key: str, where: str, bits: int) -> int | None:
        value = parent.get(key)
        if value is None:
            return None
        if not isinstance(value, bool) and isinstance(value, int | float) and value == value // 1:
            whole = int(value)
            if -(1 << (bits - 1)) <= whole < 1 << (bits - 1):
                return whole
        raise self.fail(value, where + key, f"int{bits}")

    def objects(self, parent: JSONObject, key: str, where: str, wanted: str) -> Iterator[JSONObject]:
        value = parent.get(key)
        if value is None:
            return
        if not isinstance(value, list):
            raise self.fail(value, where + key, f"[]{wanted}")
        for item in value:
            self.meter.charge_steps(_STEPS_OF_OBJECT)
            if item is not None and not isinstance(item, dict):
                raise self.fail(item, where + key, wanted)
            yield item or {}

    def texts(self, parent: JSONObject, key: str, where: str, wanted: str) -> tuple[str, ...]:
        value = parent.get(key)
        if value is None:
            return ()
        if not isinstance(value, list):
            raise self.fail(value, where + key, f"[]{wanted}")
        self.meter.charge_steps(len(value))
        for item in value:
            if item is not None and not isinstance(item, str):
                raise self.fail(item, where + key, wanted)
        return tuple(item or "" for item in value)


def read_pod(resource: JSON, kind: str, meter: Meter = UNMETERED) -> Pod:
    """Read the pod of a Pod, or the pod template of a controller.

    A missing template is an empty pod, as in Kubernetes. The annotations are those that the pod will have; of a CronJob
    Kyverno reads those of the job template instead, which never reach its pods. Raises DocumentError for a kind without
    a pod and for fields of the wrong type, and what `meter` raises when there are too many containers to read.

    >>> read_pod({"spec": {"hostPID": True}}, "Pod").host_namespaces
    ('hostPID',)
    """
    if kind not in POD_KINDS or not isinstance(resource, dict):
        raise DocumentError("could not find correct resource type")
    if kind == "Pod":
        return _read(_Reader("Pod.", meter), resource)
    reader = _Reader(f"{'CronJob' if kind == 'CronJob' else 'Deployment'}.", meter)
    outer = reader.object(resource, "spec", "", f"v1.{kind}Spec") or {}
    if kind == "CronJob":
        job = reader.object(outer, "jobTemplate", "spec.", "v1.JobTemplateSpec") or {}
        job_spec = reader.object(job, "spec", "spec.jobTemplate.", "v1.JobSpec") or {}
        template = reader.object(job_spec, "template", "spec.jobTemplate.spec.", "v1.PodTemplateSpec") or {}
        return _read(_Reader("CronJob.spec.jobTemplate.spec.template.", meter), template)
    template = reader.object(outer, "template", "spec.", "v1.PodTemplateSpec") or {}
    return _read(_Reader("Deployment.spec.template.", meter), template)


def _read(reader: _Reader, holder: JSONObject) -> Pod:
    spec = reader.object(holder, "spec", "", "v1.PodSpec") or {}
    system = reader.object(spec, "os", "spec.", "v1.PodOS") or {}
    namespaces = ("hostNetwork", "hostPID", "hostIPC")
    return Pod(
        annotations=_annotations(reader, holder),
        host_namespaces=tuple(name for name in namespaces if reader.flag(spec, name, "spec.")),
        is_windows=reader.text(system, "name", "spec.os.") == "windows",
        security=_security(reader, spec, "spec.", "v1.PodSecurityContext"),
        volumes=tuple(_volume(reader, each) for each in reader.objects(spec, "volumes", "spec.", "v1.Volume")),
        containers=(
            *_containers(reader, spec, "initContainers", "v1.Container"),
            *_containers(reader, spec, "containers", "v1.Container"),
            *_containers(reader, spec, "ephemeralContainers", "v1.EphemeralContainer"),
        ),
    )


def _annotations(reader: _Reader, described: JSONObject) -> dict[str, str]:
    metadata = reader.object(described, "metadata", "", "v1.ObjectMeta") or {}
    annotations = reader.object(metadata, "annotations", "metadata.", "map[string]string") or {}
    reader.meter.charge_steps(len(annotations))
    for value in annotations.values():
        if value is not None and not isinstance(value, str):
            raise reader.fail(value, "metadata.annotations", "string")
    return {key: value or "" for key, value in annotations.items()}


def _volume(reader: _Reader, raw: JSONObject) -> Volume:
    host_path = reader.object(raw, "hostPath", "spec.volumes.", "v1.HostPathVolumeSource")
    return Volume(
        name=reader.text(raw, "name", "spec.volumes.") or "",
        sources=frozenset(key for key, value in raw.items() if key != "name" and value is not None),
        host_path=None if host_path is None else reader.text(host_path, "path", "spec.volumes.hostPath.") or "",
    )


def _containers(reader: _Reader, spec: JSONObject, listed: str, wanted: str) -> Iterator[Container]:
    where = f"spec.{listed}."
    for index, raw in enumerate(reader.objects(spec, listed, "spec.", wanted)):
        ports = reader.objects(raw, "ports", where, "v1.ContainerPort")
        host_ports = [
            (place, reader.number(port, "hostPort", f"{where}ports.", 32)) for place, port in enumerate(ports)
        ]
        yield Container(
            listed=listed,
            index=index,
            name=reader.text(raw, "name", where) or "",
            image=reader.text(raw, "image", where) or "",
            security=_security(reader, raw, where, "v1.SecurityContext"),
            host_ports=tuple((place, port) for place, port in host_ports if port),
            handler_hosts=tuple(_handler_hosts(reader, raw, where)),
        )


def _handler_hosts(reader: _Reader, raw: JSONObject, where: str) -> Iterator[str]:
    for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
        handler = reader.object(raw, probe, where, "v1.Probe")
        if handler:
            yield from _hosts(reader, handler, f"{where}{probe}.")
    lifecycle = reader.object(raw, "lifecycle", where, "v1.Lifecycle")
    if lifecycle:
        for event in ("postStart", "preStop"):
            handler = reader.object(lifecycle, event, f"{where}lifecycle.", "v1.LifecycleHandler")
            if handler:
                yield from _hosts(reader, handler, f"{where}lifecycle.{event}.")


def _hosts(reader: _Reader, handler: JSONObject, where: str) -> Iterator[str]:
    for action, wanted in (("httpGet", "v1.HTTPGetAction"), ("tcpSocket", "v1.TCPSocketAction")):
        target = reader.object(handler, action, where, wanted)
        host = reader.text(target, "host", f"{where}{action}.") if target else None
        if host:
            yield host


def _security(reader: _Reader, parent: JSONObject, where: str, wanted: str) -> SecurityContext:
    raw = reader.object(parent, "securityContext", where, wanted)
    if raw is None:
        return _UNSET
    where = f"{where}securityContext."
    windows = reader.object(raw, "windowsOptions", where, "v1.WindowsSecurityContextOptions") or {}
    capabilities = reader.object(raw, "capabilities", where, "v1.Capabilities") or {}
    sysctls = reader.objects(raw, "sysctls", where, "v1.Sysctl")
    return SecurityContext(
        host_process=reader.flag(windows, "hostProcess", f"{where}windowsOptions."),
        privileged=reader.flag(raw, "privileged", where),
        allow_privilege_escalation=reader.flag(raw, "allowPrivilegeEscalation", where),
        run_as_non_root=reader.flag(raw, "runAsNonRoot", where),
        run_as_user=reader.number(raw, "runAsUser", where, 64),
        proc_mount=reader.text(raw, "procMount", where),
        seccomp_type=_profile_type(reader, raw, "seccompProfile", where, "v1.SeccompProfile"),
        app_armor_type=_profile_type(reader, raw, "appArmorProfile", where, "v1.AppArmorProfile"),
        selinux=_selinux(reader, raw, where),
        added=reader.texts(capabilities, "add", f"{where}capabilities.", "v1.Capability"),
        dropped=reader.texts(capabilities, "drop", f"{where}capabilities.", "v1.Capability"),
        sysctls=tuple(reader.text(each, "name", f"{where}sysctls.") or "" for each in sysctls),
    )


def _profile_type(reader: _Reader, raw: JSONObject, key: str, where: str, wanted: str) -> str | None:
    profile = reader.object(raw, key, where, wanted)
    return None if profile is None else reader.text(profile, "type", f"{where}{key}.") or ""


def _selinux(reader: _Reader, raw: JSONObject, where: str) -> SELinuxOptions | None:
    options = reader.object(raw, "seLinuxOptions", where, "v1.SELinuxOptions")
    if options is None:
        return None
    where = f"{where}seLinuxOptions."
    type_, user, role = (reader.text(options, key, where) or "" for key in ("type", "user", "role"))
    return SELinuxOptions(type_, user, role)


def _shape(value: JSON) -> str:
    match value:
        case bool():
            return "bool"
        case int():
            return "number"
        case float():
            return f"number {value}"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"
