"""Judge a pod by a level and a version of the standards, and word the verdict.

Everything that depends on the rule alone is chosen when it is compiled; at run time the pod is read once and the checks
are called.
(Kyverno: pkg/pss and pkg/engine/handlers/validation)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyverno.kube.json import JSON
from pyverno.kube.meter import UNMETERED, Meter
from pyverno.podsecurity.control import Judge, Level
from pyverno.podsecurity.controls import CHECKS, CONTROLS
from pyverno.podsecurity.excludes import Exclude, compile_excludes, exempt
from pyverno.podsecurity.finding import Violation
from pyverno.podsecurity.pod import Pod, read_pod
from pyverno.podsecurity.versions import parse_version
from pyverno.value import dataclass, replace

__all__ = ["PodSecurityCheck", "PodSecurityOutcome", "compile_pod_security", "evaluate", "message"]

_CONTROL_OF = {check.id: control.name for control in CONTROLS for check in control.checks}
_TEMPLATES = {"Pod": "spec", "CronJob": "spec.jobTemplate.spec.template.spec"}


@dataclass(frozen=True, slots=True)
class PodSecurityOutcome:
    """The verdict of the standards on one resource.

    `violations` keep the order of the checks; their paths are those of the resource's kind. `is_exempted` is True
    when the rule alone refuses the pod and only the extra excludes allow it.
    """

    allowed: bool
    violations: tuple[Violation, ...]
    is_exempted: bool = False


_ALLOWED = PodSecurityOutcome(allowed=True, violations=())


@dataclass(frozen=True, slots=True)
class PodSecurityCheck:
    """A compiled `validate.podSecurity` rule: the chosen checks and the compiled excludes.

    `level` and `version` are the texts of the rule, as messages and reports show them.
    """

    level: str
    version: str
    judges: tuple[tuple[str, Judge], ...]
    excludes: tuple[Exclude, ...]
    by_id: dict[str, Judge]

    def check(
        self, resource: JSON, kind: str, extra_excludes: Sequence[Exclude] = (), *, meter: Meter = UNMETERED
    ) -> PodSecurityOutcome:
        """Judge one resource.

        The rule's own excludes come first; only what is then still refused is held against `extra_excludes`, those
        of the matching exceptions.
        Raises DocumentError for a kind without a pod and for a pod that cannot be read. `meter` is charged for every
        container and control.

        >>> check = compile_pod_security({"level": "baseline"})
        >>> check.check({"spec": {"hostPID": True}}, "Pod").violations[0].check_id
        'hostNamespaces'
        """
        pod = read_pod(resource, kind, meter)
        violations = self._violations(pod, meter)
        if violations and self.excludes:
            violations = exempt(violations, self.excludes, pod, self.by_id, meter)
        if not violations:
            return _ALLOWED
        if extra_excludes:
            violations = exempt(violations, extra_excludes, pod, self.by_id, meter)
            if not violations:
                return PodSecurityOutcome(allowed=True, violations=(), is_exempted=True)
        return PodSecurityOutcome(allowed=False, violations=_place(violations, kind))

    def _violations(self, pod: Pod, meter: Meter) -> tuple[Violation, ...]:
        found: list[Violation] = []
        price = len(pod.containers) + len(pod.volumes)
        for check_id, judge in self.judges:
            meter.charge_steps(price)
            finding = judge(pod)
            if finding is not None:
                control = _CONTROL_OF[check_id]
                texts = (finding.reason, finding.detail)
                found.append(Violation(check_id, control, *texts, finding.errors, finding.containers))
        return tuple(found)


def compile_pod_security(rule: JSON) -> PodSecurityCheck:
    """Compile the `validate.podSecurity` object of a rule: level, version, exclude.

    Raises ValueSyntaxError when the version is neither `latest` nor `v1.x`. Excludes are not validated here, see
    `exclude_problems`.

    >>> len(compile_pod_security({"level": "baseline", "version": "latest"}).judges)
    12
    """
    document = rule if isinstance(rule, dict) else {}
    level, version = str(document.get("level") or ""), str(document.get("version") or "")
    parsed = parse_version(version)
    # COMPAT: only `baseline` narrows the list, so `privileged` requires as much as `restricted`.
    judges = tuple(
        (check.id, check.variant(parsed).judge)
        for check in CHECKS
        if level != Level.BASELINE.value or check.level is Level.BASELINE
    )
    return PodSecurityCheck(level, version, judges, compile_excludes(document.get("exclude")), dict(judges))


def evaluate(
    resource: JSON, kind: str, *, level: str, version: str = "latest", excludes: Sequence[JSON] = ()
) -> PodSecurityOutcome:
    """Judge one resource once; a rule that is used again is better compiled.

    >>> evaluate({"spec": {"containers": [{"name": "a"}]}}, "Pod", level="baseline").allowed
    True
    """
    rule = {"level": level, "version": version, "exclude": list(excludes)}
    return compile_pod_security(rule).check(resource, kind)


def message(rule: str, outcome: PodSecurityOutcome, *, level: str, version: str) -> str:
    """Word the outcome as the message of a rule; `level` and `version` are the texts of the rule.

    >>> refused = evaluate({"spec": {"hostPID": True}}, "Pod", level="baseline")
    >>> print(message("psa", refused, level="baseline", version="latest"))
    Validation rule 'psa' failed. It violates PodSecurity "baseline:latest": (Forbidden reason: host namespaces, \
field error list: [spec.hostPID is forbidden, forbidden values found: true])
    """
    if outcome.allowed:
        return f"Validation rule '{rule}' passed."
    listed = "".join(violation.text for violation in outcome.violations)
    return f"Validation rule '{rule}' failed. It violates PodSecurity \"{level}:{version}\": {listed}"


def _place(violations: tuple[Violation, ...], kind: str) -> tuple[Violation, ...]:
    place = _placing(kind)
    return tuple(
        violation.with_errors(tuple(replace(error, field=place(error.field)) for error in violation.errors))
        for violation in violations
    )


def _placing(kind: str) -> Callable[[str], str]:
    template = _TEMPLATES.get(kind, "spec.template.spec")
    # COMPAT: Kyverno replaces text, annotation keys included, and moves the metadata of a bare Pod as well.
    return lambda path: path.replace("spec", template).replace("metadata", "spec.template.metadata")
