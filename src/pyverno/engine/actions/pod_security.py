"""`validate.podSecurity`: the Pod Security Standards."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from pyverno.engine.result import PodSecurityDetail, Status, Verdict
from pyverno.engine.rule import Exemption, Run
from pyverno.errors import BudgetExceededError, PyvernoError
from pyverno.images import IMAGE_VOLUMES, find_images
from pyverno.kube.json import JSON
from pyverno.lang.runtime import Runtime
from pyverno.podsecurity import MAX_LISTED, PodSecurityCheck, PodSecurityOutcome, message
from pyverno.value import dataclass

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
            outcome = self.check.check(run.resource, run.request.gvk.kind, meter=run.runtime.budget)
        except PyvernoError as error:
            return (Verdict(Status.ERROR, f"Error while getting new resource: {error.message}"),)
        return (self._verdict(outcome, run),)

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
        check = partial(self.check.check, meter=run.runtime.budget)
        narrowest: PodSecurityOutcome | None = None
        try:
            for exemption in exemptions:
                outcome = check(run.resource, run.request.gvk.kind, exemption.pod_security)
                if outcome.is_exempted:
                    text = f"rule is skipped due to policy exceptions {exemption.key}"
                    return (Verdict(Status.SKIP, text, exceptions=(exemption.key,)),)
                if narrowest is None or len(outcome.violations) < len(narrowest.violations):
                    narrowest = outcome
        except PyvernoError as error:
            return (Verdict(Status.ERROR, f"Error while getting new resource: {error.message}"),)
        return None if narrowest is None else (self._verdict(narrowest, run),)

    def _verdict(self, outcome: PodSecurityOutcome, run: Run) -> Verdict:
        text = message(self.rule, outcome, level=self.check.level, version=self.check.version)
        images = _images_by_container(run.resource, run.runtime) if outcome.violations else {}
        checks = tuple(
            {
                "id": violation.check_id,
                "name": violation.control,
                "images": [images[name] for name in violation.containers[:MAX_LISTED] if name in images],
            }
            for violation in outcome.violations
        )
        detail = PodSecurityDetail(self.check.level, self.check.version, checks)
        return Verdict(Status.PASS if outcome.allowed else Status.FAIL, text, detail)


def _images_by_container(resource: JSON, runtime: Runtime) -> dict[str, str]:
    """Return the image of every container by its name."""
    settings = runtime.settings
    try:
        found = find_images(
            resource,
            default_registry=settings.default_registry,
            mutate_registry=settings.mutates_registry,
            runtime=runtime,
        )
    except BudgetExceededError:
        raise
    except PyvernoError:
        return {}
    return {
        name: image.reference
        for group, images in found.items()
        if group != IMAGE_VOLUMES
        for name, image in images.items()
    }
