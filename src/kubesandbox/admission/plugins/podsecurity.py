"""Pod Security admission: the levels in the labels of a namespace, enforced, warned about, and recorded.

All three modes apply to pods, only `warn` and `audit` to templates of controllers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

from kubesandbox.admission.policies.requests import labels_of, refused
from kubesandbox.attributes import Attributes, Notes
from kubesandbox.parsing.requests import go_quote
from kubesandbox.storage.store import Key
from kubesandbox.view import ClusterView
from pyverno.engine.request import Operation
from pyverno.errors import DocumentError, ValueSyntaxError
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.status import FieldError, bad_request, invalid
from pyverno.podsecurity import CHECKS, LATEST, Finding, Level, Version, parse_version, read_pod
from pyverno.podsecurity.control import Judge
from pyverno.value import dataclass, replace

__all__ = ["PodSecurity"]

_LABEL = "pod-security.kubernetes.io/"
_LEVELS = ("privileged", "baseline", "restricted")
_MODES = ("enforce", "audit", "warn")
_TEMPLATES: Mapping[str, tuple[str, ...]] = {
    "replicationcontrollers": ("spec", "template"),
    "podtemplates": ("template",),
    "replicasets.apps": ("spec", "template"),
    "deployments.apps": ("spec", "template"),
    "statefulsets.apps": ("spec", "template"),
    "daemonsets.apps": ("spec", "template"),
    "jobs.batch": ("spec", "template"),
    "cronjobs.batch": ("spec", "jobTemplate", "spec", "template"),
}
"""Storage keys of the controllers → the path of the pod template."""

_PASSED_BY = frozenset({"exec", "attach", "binding", "eviction", "log", "portforward", "proxy", "status"})
_OVERRIDDEN: Mapping[str, str] = {
    "capabilities_baseline": "capabilities_restricted",
    "hostPathVolumes": "restrictedVolumes",
    "seccompProfile_baseline": "seccompProfile_restricted",
}
"""Baseline checks → the restricted checks that replace them, in versions that have these."""

_MAX_PODS = 3000


@dataclass(frozen=True, slots=True)
class _Standard:
    """A level and a version."""

    level: str = "privileged"
    version: Version = LATEST

    def __str__(self) -> str:
        return f"{self.level}:{self.version}"

    @property
    def strictness(self) -> int:
        return _LEVELS.index(self.level)


class PodSecurity:
    """The plugin."""

    def __init__(self, cluster: ClusterView) -> None:
        """Take where namespaces and pods are."""
        self._cluster = cluster

    def check(self, attributes: Attributes, notes: Notes) -> None:
        """Raise 403 for a pod that its namespace does not allow, 422 for invalid labels of a namespace."""
        if attributes.operation not in (Operation.CREATE, Operation.UPDATE) or attributes.object is None:
            return
        key = attributes.type.key
        if key == "namespaces" and not attributes.subresource:
            self._check_namespace(attributes, notes)
        elif key == "pods" and attributes.subresource not in _PASSED_BY:
            self._check_pod(attributes, notes)
        elif key in _TEMPLATES and not attributes.subresource:
            self._check_template(attributes, notes)

    def _check_namespace(self, attributes: Attributes, notes: Notes) -> None:
        new, problems = _standards(labels_of(attributes.object))
        if attributes.operation is Operation.CREATE:
            if problems:
                raise invalid("", "Namespace", attributes.name, problems)
            return
        old, old_problems = _standards(labels_of(attributes.old))
        if problems and problems != old_problems:
            raise invalid("", "Namespace", attributes.name, problems)
        wanted, before = new["enforce"], old["enforce"]
        is_relaxed = wanted.version == before.version and wanted.strictness <= before.strictness
        if wanted.level != "privileged" and not is_relaxed:
            for warning in self._present_violations(attributes.name, wanted):
                notes.warn(warning)

    def _present_violations(self, namespace: str, standard: _Standard) -> Iterable[str]:
        """Return warnings about existing pods that violate the namespace's new standard."""
        found: dict[str, list[str]] = {}
        pods = self._cluster.all("pods", namespace)
        for stored in pods[:_MAX_PODS]:
            findings = _findings(stored.body, standard)
            if findings:
                reasons = ", ".join(finding.reason for finding in findings)
                found.setdefault(reasons, []).append(stored.key.name)
        if len(pods) > _MAX_PODS:
            counts = f"first {_MAX_PODS} of {len(pods)} existing pods"
            yield f"new PodSecurity enforce level only checked against the {counts}"
        if found:
            asked = f"the new PodSecurity enforce level {go_quote(str(standard))}"
            yield f"existing pods in namespace {go_quote(namespace)} violate {asked}"
            yield from sorted(f"{_count(names)}: {reasons}" for reasons, names in found.items())

    def _check_pod(self, attributes: Attributes, notes: Notes) -> None:
        standards, problems = self._read_standards(attributes)
        if not problems and all(each.level == "privileged" for each in standards.values()):
            notes.annotations[f"{_LABEL}enforce-policy"] = str(standards["enforce"])
            return
        if attributes.operation is Operation.UPDATE and not _is_significant(attributes.object, attributes.old):
            return
        notes.annotations[f"{_LABEL}enforce-policy"] = str(standards["enforce"])
        self._evaluate(attributes, notes, attributes.object, standards, problems, enforces=True)

    def _check_template(self, attributes: Attributes, notes: Notes) -> None:
        template: JSON = attributes.object
        for step in _TEMPLATES[attributes.type.key]:
            template = template.get(step) if isinstance(template, dict) else None
        if not isinstance(template, dict):
            return
        standards, problems = self._read_standards(attributes)
        if problems or any(standards[mode].level != "privileged" for mode in ("warn", "audit")):
            self._evaluate(attributes, notes, template, standards, problems, enforces=False)

    def _read_standards(self, attributes: Attributes) -> tuple[dict[str, _Standard], list[FieldError]]:
        found = self._cluster.get(Key("namespaces", "", attributes.namespace))
        return _standards({} if found is None else labels_of(found.body))

    def _evaluate(
        self,
        attributes: Attributes,
        notes: Notes,
        pod: JSON,
        standards: Mapping[str, _Standard],
        problems: list[FieldError],
        *,
        enforces: bool,
    ) -> None:
        if problems:
            listed = ", ".join(map(str, problems))
            said = f"[{listed}]" if len(problems) > 1 else listed
            notes.annotations[f"{_LABEL}error"] = f"Failed to parse policy: {said}"
        try:
            found = {mode: _findings(pod, standard) for mode, standard in standards.items()}
        except DocumentError as error:
            raise bad_request(error.message) from None
        if found["audit"]:
            notes.annotations[f"{_LABEL}audit-violations"] = (
                f"would {_format_violations(standards['audit'], found['audit'])}"
            )
        if enforces and found["enforce"]:
            raise refused(attributes, _format_violations(standards["enforce"], found["enforce"], verb="violates"))
        if found["warn"]:
            notes.warn(f"would {_format_violations(standards['warn'], found['warn'])}")


def _standards(labels: Mapping[str, str]) -> tuple[dict[str, _Standard], list[FieldError]]:
    """Read the labels of a namespace: the level of each mode, and the errors in the labels."""
    found: dict[str, _Standard] = dict.fromkeys(_MODES, _Standard())
    problems: list[FieldError] = []
    for mode in _MODES:
        level, version = labels.get(f"{_LABEL}{mode}"), labels.get(f"{_LABEL}{mode}-version")
        if level is not None and level not in _LEVELS:
            problems.append(_problem(mode, level, f"must be one of {', '.join(_LEVELS)}"))
            # Kubernetes: an invalid level is enforced as `restricted`, without warnings
            level = "restricted" if mode == "enforce" else "privileged"
        if level is not None:
            found[mode] = replace(found[mode], level=level)
        if version is not None:
            try:
                if not version:
                    raise ValueSyntaxError('must be "latest" or "v1.x"')
                found[mode] = replace(found[mode], version=parse_version(version))
            except ValueSyntaxError as error:
                problems.append(_problem(f"{mode}-version", version, error.message))
    enforce = found["enforce"]
    # Kubernetes: without a level of its own, `warn` takes that of `enforce`
    if f"{_LABEL}warn" not in labels and labels.get(f"{_LABEL}enforce") in _LEVELS and enforce.strictness:
        version_said = f"{_LABEL}warn-version" in labels
        found["warn"] = _Standard(enforce.level, found["warn"].version if version_said else enforce.version)
    return found, problems


def _problem(label: str, value: str, why: str) -> FieldError:
    return FieldError(f"metadata.labels[{_LABEL}{label}]", "Invalid value", why, go_quote(value))


@lru_cache(maxsize=256)
def _judges(standard: _Standard) -> tuple[Judge, ...]:
    """Return the checks of a level and version in the order in which messages list them."""
    if standard.level == "privileged":
        return ()
    version = standard.version
    known = {check.id: check for check in CHECKS if check.variants[0].since <= version}
    wanted = [check for check in known.values() if standard.level == "restricted" or check.level is Level.BASELINE]
    if standard.level == "restricted":
        wanted = [check for check in wanted if _OVERRIDDEN.get(check.id) not in known]
    wanted.sort(key=lambda check: (check.level is Level.RESTRICTED, check.id))
    return tuple(check.variant(version).judge for check in wanted)


def _findings(holder: JSON, standard: _Standard) -> list[Finding]:
    """Check an object with a pod's metadata and spec."""
    judges = _judges(standard)
    if not judges:
        return []
    pod = read_pod(holder, "Pod")
    return [finding for finding in (judge(pod) for judge in judges) if finding is not None]


def _format_violations(standard: _Standard, findings: Iterable[Finding], verb: str = "violate") -> str:
    # only Kyverno reports the further lines of a check; Kubernetes has the first line
    details = [(finding.reason, finding.detail.partition("\n")[0]) for finding in findings]
    listed = ", ".join(f"{reason} ({detail})" if detail else reason for reason, detail in details)
    return f"{verb} PodSecurity {go_quote(str(standard))}: {listed}"


def _count(names: list[str]) -> str:
    first, others = min(names), len(names) - 1
    if not others:
        return first
    return f"{first} (and {others} other pod{'s' if others > 1 else ''})"


def _is_significant(new: JSONObject | None, old: JSONObject | None) -> bool:
    """Return whether an update of a pod changes the fields that the standards check: containers and their images."""
    before, after = (((body or {}).get("spec") or {}) for body in (old, new))
    for listed in ("containers", "initContainers"):
        images = [[each.get("image") for each in spec.get(listed) or ()] for spec in (before, after)]
        if images[0] != images[1]:
            return True
    known = {each.get("name"): each.get("image") for each in before.get("ephemeralContainers") or ()}
    missing = object()
    return any(
        known.get(each.get("name"), missing) != each.get("image") for each in after.get("ephemeralContainers") or ()
    )
