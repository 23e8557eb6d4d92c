"""`validate.podSecurity` in CEL: one test for each check of the level, with the lists of the version that is named.

The checks are those of `pyverno.podsecurity`, whose order they keep. An exclude takes a whole control away, or the
containers of some images; excludes of single fields and values have no readable form.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from pyverno.compiler.migration.outcome import UnconvertibleError, join_path
from pyverno.compiler.migration.patterns.wildcards import text_matches
from pyverno.compiler.migration.text import Cel, CelType, Level, Reference, all_of, any_of, compare, element, literal
from pyverno.errors import ValueSyntaxError
from pyverno.kube.json import JSON, JSONObject
from pyverno.podsecurity.control import Level as Standard
from pyverno.podsecurity.control import Reach
from pyverno.podsecurity.controls import CHECKS, CONTROLS
from pyverno.podsecurity.controls.capabilities import BINDING, DEFAULT
from pyverno.podsecurity.controls.sysctls import SAFE
from pyverno.podsecurity.controls.volume_types import ALLOWED
from pyverno.podsecurity.versions import Version, parse_version, since
from pyverno.value import dataclass

__all__ = ["ControlTest", "all_containers", "pod_security_tests"]

_EMPTY: Final = literal("")
_LISTS: Final = ("initContainers", "containers", "ephemeralContainers")
_PROFILES: Final = ["RuntimeDefault", "Localhost"]
_APP_ARMOR: Final = "container.apparmor.security.beta.kubernetes.io/"
_HANDLERS: Final = (
    ("livenessProbe",),
    ("readinessProbe",),
    ("startupProbe",),
    ("lifecycle", "postStart"),
    ("lifecycle", "preStop"),
)
_SELINUX: Final = ("container_t", "container_init_t", "container_kvm_t")
_IMPLICIT: Final = ("Running as Non-root", "Seccomp")
"""Controls whose exclude without images also forgives one container, whichever comes first."""

_CONTROLS: Final = {check.id: control for control in CONTROLS for check in control.checks}


@dataclass(frozen=True, slots=True, eq=False)
class ControlTest:
    """One check of the standards: its control's title, and whether a pod passes."""

    title: str
    passes: Cel


@dataclass(frozen=True, slots=True, eq=False)
class _Pod:
    """The input of the checks: the pod, the version of the standards, and what excludes leave out."""

    root: Reference
    annotations: Cel
    version: Version
    without_pod_level: bool = False
    excluded_images: tuple[str, ...] = ()
    listed: Cel | None = None

    @property
    def spec(self) -> Reference:
        return self.root.field("spec")

    @property
    def context(self) -> Reference:
        """The pod's own security context."""
        return self.spec.field("securityContext")

    def containers(self, test: Callable[[Reference], Cel]) -> Cel:
        """Return whether all containers of the three lists pass, those of excluded images left out."""
        joined = self.listed or all_containers(self.root)
        container = element("c", self.spec.field("containers").schema.element)
        image = container.field("image").or_value(_EMPTY)
        excused = any_of(text_matches(image, pattern) for pattern in self.excluded_images)
        return joined.macro("all", "c", any_of([excused, test(container)]))

    def contexts(self, test: Callable[[Reference], Cel]) -> Cel:
        """Return whether the pod's security context and those of all containers pass."""
        own = [] if self.without_pod_level else [test(self.context)]
        return all_of([*own, self.containers(lambda container: test(container.field("securityContext")))])

    def unless_windows(self, cel: Cel) -> Cel:
        """Return a test that pods of Windows pass, since the version that exempts them."""
        if self.version < since(25):
            return cel
        system = self.spec.field("os").field("name").or_value(_EMPTY)
        return any_of([compare(system, "==", literal("windows")), cel])


def all_containers(pod: Reference) -> Cel:
    """Return the containers of a pod's three lists.

    >>> from pyverno.compiler.migration.schema import SchemaBook
    >>> print(all_containers(Reference("pod", SchemaBook().of("", "v1", "Pod"))))
    pod.spec.?initContainers.orValue([]) + pod.spec.containers + pod.spec.?ephemeralContainers.orValue([])
    """
    lists = [pod.field("spec").field(name).or_empty().within(Level.SUM) for name in _LISTS]
    return Cel(" + ".join(lists), CelType.LIST, Level.SUM)


def pod_security_tests(
    written: JSONObject, pod: Reference, path: str, *, containers: Cel | None = None
) -> tuple[ControlTest, ...]:
    """Return the tests of a rule, one for each check that it makes.

    `pod` is an object with `metadata` and `spec`, a Pod or the template of a controller, `containers` a variable that
    holds all containers of the pod. Raises UnconvertibleError for excludes without a form.

    >>> from pyverno.compiler.migration.schema import SchemaBook
    >>> pod = Reference("object", SchemaBook().of("", "v1", "Pod"))
    >>> tests = pod_security_tests({"level": "baseline", "version": "v1.30"}, pod, "validate.podSecurity")
    >>> {each.title: each.passes.text for each in tests}["Host ports"][-57:]
    'c.?ports.orValue([]).all(p, p.?hostPort.orValue(0) == 0))'
    """
    try:
        version = parse_version(str(written.get("version") or ""))
    except ValueSyntaxError as error:
        raise UnconvertibleError("pod-security", join_path(path, "version"), error.message, "mend the rule") from error
    level = str(written.get("level") or "")
    excludes = _excludes(written.get("exclude"), join_path(path, "exclude"))
    annotations = pod.field("metadata").field("annotations").or_empty()
    found = []
    for check in CHECKS:
        if level == Standard.BASELINE.value and check.level is not Standard.BASELINE:
            continue
        control = _CONTROLS[check.id]
        excluded = excludes.get(control.name, [])
        if any(images is None for images in excluded) and control.reach is Reach.POD:
            continue
        images = tuple(each for listed in excluded if listed is not None for each in listed)
        subject = _Pod(pod, annotations, version, None in excluded, images, containers)
        found.append(ControlTest(control.title, _TESTS[check.id](subject)))
    return tuple(found)


def _excludes(written: JSON, path: str) -> Mapping[str, list[tuple[str, ...] | None]]:
    """Return the images of each exclude by control, None for one without images."""
    found: dict[str, list[tuple[str, ...] | None]] = {}
    for index, each in enumerate(written or []):
        where = f"{path}[{index}]"
        name = str(each.get("controlName") or "")
        if each.get("restrictedField") or each.get("values"):
            raise UnconvertibleError(
                "pod-security-exclude",
                join_path(where, "restrictedField"),
                "an exclude of single fields and values",
                "exclude the control, or write its test by hand",
            )
        images = tuple(each.get("images") or ()) or None
        if images is None and name in _IMPLICIT:
            raise UnconvertibleError(
                "pod-security-exclude",
                where,
                f"an exclude of {name} without images also forgives one container, whichever comes first",
                "name the images",
            )
        found.setdefault(name, []).append(images)
    return found


# --------------------------------------------------------------------------------------------------------------- checks


def _flag_is_unset(holder: Reference, *names: str) -> Cel:
    for name in names:
        holder = holder.field(name)
    return holder.or_value(literal(False)).not_()


def _host_process(pod: _Pod) -> Cel:
    return pod.contexts(lambda context: _flag_is_unset(context, "windowsOptions", "hostProcess"))


def _host_namespaces(pod: _Pod) -> Cel:
    return all_of(_flag_is_unset(pod.spec, name) for name in ("hostNetwork", "hostPID", "hostIPC"))


def _privileged(pod: _Pod) -> Cel:
    return pod.containers(lambda container: _flag_is_unset(container.field("securityContext"), "privileged"))


def _added(container: Reference) -> Cel:
    return container.field("securityContext").field("capabilities").field("add").or_empty()


def _added_within(names: Sequence[str]) -> Callable[[Reference], Cel]:
    return lambda container: _added(container).macro("all", "a", compare(Cel("a"), "in", literal([*names])))


def _capabilities_baseline(pod: _Pod) -> Cel:
    return pod.containers(_added_within(sorted(DEFAULT)))


def _capabilities_restricted(pod: _Pod) -> Cel:
    def test(container: Reference) -> Cel:
        dropped = container.field("securityContext").field("capabilities").field("drop").or_empty()
        return all_of([compare(literal("ALL"), "in", dropped), _added_within(sorted(BINDING))(container)])

    return pod.unless_windows(pod.containers(test))


def _host_paths(pod: _Pod) -> Cel:
    volumes = pod.spec.field("volumes")
    volume = element("v", volumes.schema.element)
    return volumes.or_empty().macro("all", "v", volume.field("hostPath").is_present().not_())


def _host_ports(pod: _Pod) -> Cel:
    def test(container: Reference) -> Cel:
        ports = container.field("ports")
        port = element("p", ports.schema.element).field("hostPort")
        return ports.or_empty().macro("all", "p", compare(port.or_value(literal(0)), "==", literal(0)))

    return pod.containers(test)


def _host_probes(pod: _Pod) -> Cel:
    # Kyverno runs the oldest variant of a check that is newer than the version
    def test(container: Reference) -> Cel:
        tests = []
        for names in _HANDLERS:
            handler = container
            for name in names:
                handler = handler.field(name)
            for action in ("httpGet", "tcpSocket"):
                tests.append(compare(handler.field(action).field("host").or_value(_EMPTY), "==", _EMPTY))
        return all_of(tests)

    return pod.containers(test)


def _app_armor(pod: _Pod) -> Cel:
    def by_field(context: Reference) -> Cel:
        profile = context.field("appArmorProfile").field("type").or_value(literal("RuntimeDefault"))
        return compare(profile, "in", literal(_PROFILES))

    fields = pod.contexts(by_field)
    if pod.without_pod_level:
        return fields
    key = Cel("k", CelType.STRING)
    profile = Cel(f"{pod.annotations.within(Level.PRIMARY)}[k]", CelType.STRING)
    starts = key.method("startsWith", literal(_APP_ARMOR), returns=CelType.BOOL)
    allowed = any_of(
        [
            compare(profile, "in", literal(["", "runtime/default"])),
            profile.method("startsWith", literal("localhost/"), returns=CelType.BOOL),
        ]
    )
    return all_of([fields, pod.annotations.macro("all", "k", any_of([starts.not_(), allowed]))])


def _selinux(pod: _Pod) -> Cel:
    types = ["", *_SELINUX, *(["container_engine_t"] if pod.version >= since(31) else [])]

    def test(context: Reference) -> Cel:
        options = context.field("seLinuxOptions")
        kind, user, role = (options.field(name).or_value(_EMPTY) for name in ("type", "user", "role"))
        return all_of([compare(kind, "in", literal(types)), compare(user, "==", _EMPTY), compare(role, "==", _EMPTY)])

    return pod.contexts(test)


def _proc_mount(pod: _Pod) -> Cel:
    def test(container: Reference) -> Cel:
        mount = container.field("securityContext").field("procMount").or_value(literal("Default"))
        return compare(mount, "==", literal("Default"))

    return pod.containers(test)


def _profile_is_allowed(context: Reference) -> Cel:
    profile = context.field("seccompProfile").field("type").or_value(literal("RuntimeDefault"))
    return compare(profile, "in", literal(_PROFILES))


def _seccomp_baseline(pod: _Pod) -> Cel:
    if pod.version < since(19):
        raise UnconvertibleError(
            "pod-security-version",
            "validate.podSecurity.version",
            "before v1.19 the alpha annotations of seccomp are judged, which no cluster has today",
            "name a newer version",
        )
    return pod.contexts(_profile_is_allowed)


def _seccomp_restricted(pod: _Pod) -> Cel:
    own = pod.context.field("seccompProfile").field("type").or_value(_EMPTY)
    is_set = compare(own, "in", literal(_PROFILES))

    def test(container: Reference) -> Cel:
        profile = container.field("securityContext").field("seccompProfile").field("type").or_value(_EMPTY)
        return compare(profile, "in", literal(_PROFILES))

    implicit = any_of([is_set, pod.containers(test)])
    return pod.unless_windows(all_of([pod.contexts(_profile_is_allowed), implicit]))


def _sysctls(pod: _Pod) -> Cel:
    safe: frozenset[str] = frozenset()
    for first, names in SAFE:
        if first <= pod.version or not safe:
            safe = names
    listed = pod.context.field("sysctls")
    name = element("s", listed.schema.element).field("name").or_value(_EMPTY)
    return listed.or_empty().macro("all", "s", compare(name, "in", literal(sorted(safe))))


def _volume_types(pod: _Pod) -> Cel:
    volumes = pod.spec.field("volumes")
    volume = element("v", volumes.schema.element)
    return volumes.or_empty().macro("all", "v", any_of(volume.field(name).is_present() for name in sorted(ALLOWED)))


def _privilege_escalation(pod: _Pod) -> Cel:
    def test(container: Reference) -> Cel:
        return container.field("securityContext").field("allowPrivilegeEscalation").or_value(literal(True)).not_()

    return pod.unless_windows(pod.containers(test))


def _run_as_non_root(pod: _Pod) -> Cel:
    own = pod.context.field("runAsNonRoot")

    def explicit(container: Reference) -> Cel:
        return container.field("securityContext").field("runAsNonRoot").or_value(literal(True))

    def set_(container: Reference) -> Cel:
        return container.field("securityContext").field("runAsNonRoot").or_value(literal(False))

    return any_of(
        [
            all_of([own.or_value(literal(False)), pod.containers(explicit)]),
            all_of([own.or_value(literal(True)), pod.containers(set_)]),
        ]
    )


def _run_as_user(pod: _Pod) -> Cel:
    return pod.contexts(lambda context: compare(context.field("runAsUser").or_value(literal(1)), "!=", literal(0)))


_TESTS: Final[Mapping[str, Callable[[_Pod], Cel]]] = {
    "windowsHostProcess": _host_process,
    "hostNamespaces": _host_namespaces,
    "privileged": _privileged,
    "capabilities_baseline": _capabilities_baseline,
    "capabilities_restricted": _capabilities_restricted,
    "hostPathVolumes": _host_paths,
    "hostPorts": _host_ports,
    "hostProbesAndHostLifecycle": _host_probes,
    "appArmorProfile": _app_armor,
    "seLinuxOptions": _selinux,
    "procMount": _proc_mount,
    "seccompProfile_baseline": _seccomp_baseline,
    "seccompProfile_restricted": _seccomp_restricted,
    "sysctls": _sysctls,
    "restrictedVolumes": _volume_types,
    "allowPrivilegeEscalation": _privilege_escalation,
    "runAsNonRoot": _run_as_non_root,
    "runAsUser": _run_as_user,
}
