"""`validate.podSecurity`: the Pod Security Standards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyverno.engine.result import PodSecurityDetail, Status, Verdict
from pyverno.engine.rule import Exemption, Run
from pyverno.errors import PyvernoError
from pyverno.podsecurity import PodSecurityCheck, PodSecurityOutcome, compile_excludes, message

__all__ = ["PodSecurityRule"]


@dataclass(frozen=True, slots=True)
class PodSecurityRule:
    """One level and version of the standards with the rule's excludes."""

    rule: str
    check: PodSecurityCheck

    def run(self, run: Run) -> Sequence[Verdict]:
        """Judge the pod, or the pod template of a controller."""
        if run.resource is None:
            return ()
        try:
            outcome = self.check.check(run.resource, run.request.gvk.kind)
        except PyvernoError as error:
            return (Verdict(Status.ERROR, error.message),)
        return (self._verdict(outcome),)

    def exempt(self, run: Run, exemptions: Sequence[Exemption]) -> Sequence[Verdict] | None:
        """Skip the rule, or judge what an exception leaves of it.

        Each exception is tried alone: what two of them allow together, neither allows.
        """
        for exemption in exemptions:
            if not exemption.pod_security:
                text = f"rule is skipped due to policy exception {exemption.key}"
                return (Verdict(Status.SKIP, text, exceptions=(exemption.key,)),)
        if run.resource is None:
            return ()
        try:
            for exemption in exemptions:
                excludes = compile_excludes(list(exemption.pod_security))
                outcome = self.check.check(run.resource, run.request.gvk.kind, excludes)
                if outcome.is_exempted:
                    text = f"rule is skipped due to policy exceptions {exemption.key}"
                    return (Verdict(Status.SKIP, text, exceptions=(exemption.key,)),)
        except PyvernoError as error:
            return (Verdict(Status.ERROR, error.message),)
        return None

    def _verdict(self, outcome: PodSecurityOutcome) -> Verdict:
        text = message(self.rule, outcome, level=self.check.level, version=self.check.version)
        checks = tuple(
            {"id": violation.check_id, "name": violation.control, "images": []} for violation in outcome.violations
        )
        detail = PodSecurityDetail(self.check.level, self.check.version, checks)
        return Verdict(Status.PASS if outcome.allowed else Status.FAIL, text, detail)
