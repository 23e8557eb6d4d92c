"""Verdicts on an image by whole reviews, for policies whose demands depend on more than signatures."""

from __future__ import annotations

from collections.abc import Iterator

from pyverno.compiler import Compilation
from pyverno.engine.imagesource import ImageSource
from pyverno.engine.result import CelDetail, RuleResult, Status
from pyverno.errors import UsageError
from pyverno.images.verification.ledger import Ledger
from pyverno.kube.json import JSONObject
from pyverno.offline.session import Session
from pyverno.registry.verification import DemandVerdict

__all__ = ["PodReviews"]


class PodReviews:
    """Reviews a Pod that runs the image: it is created in the namespace `default` of a cluster without objects."""

    def __init__(self, source: ImageSource, image: str) -> None:
        """Take what reads registries, and the image."""
        self._source = source
        self._image = image

    def verdicts(self, path: str, compilation: Compilation, policy: str, rule: str = "") -> Iterator[DemandVerdict]:
        """Yield a verdict for each result of a policy of a file, or of one of its rules.

        Raises UsageError where they do not apply to the Pod.
        """
        session = Session.open(compilation, registries=self._source)
        found = [
            each
            for each in session.review(self._pod()).results
            if each.rule.policy.key == policy and (not rule or each.rule_name == rule)
        ]
        judged = [each for each in found if each.status is not Status.SKIP]
        if not judged:
            reasons = "; ".join(dict.fromkeys(each.message for each in found if each.message))
            why = f": {reasons}" if reasons else ""
            raise UsageError(f"{path}: {rule or policy} does not apply to a Pod with {self._image}{why}")
        for each in judged:
            title = f"{path}: {f'rule {rule}' if rule else f'policy {policy}'}"
            yield DemandVerdict(title, each.status is Status.PASS, _problems(each), _checks(each))

    def _pod(self) -> JSONObject:
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "image", "namespace": "default"},
            "spec": {"containers": [{"name": "image", "image": self._image}]},
        }


def _problems(result: RuleResult) -> tuple[str, ...]:
    return () if result.status is Status.PASS else (result.message,)


def _checks(result: RuleResult) -> tuple[tuple[str, Ledger], ...]:
    return result.detail.checks if isinstance(result.detail, CelDetail) else ()
