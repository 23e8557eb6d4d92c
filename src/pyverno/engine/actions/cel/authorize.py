"""Answers to authorization requests: ValidatingPolicies in the evaluation modes Envoy and HTTP.

The first validation that gives an answer, and not null, decides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from pyverno.engine.cel.session import CelCondition, CelSession, CelVariable, first_unmet
from pyverno.engine.result import Status, Verdict
from pyverno.engine.rule import Exemption, Run
from pyverno.errors import EvaluationError, PyvernoError
from pyverno.lang.cel import Program
from pyverno.lang.cel.presets import read_check_request
from pyverno.lang.cel.values import StructValue
from pyverno.value import dataclass

__all__ = ["AuthorizingCheck"]

_NO_ANSWER: Final = "request does not match"


def _envoy(answer: StructValue) -> Verdict:
    if "okResponse" in answer.fields:
        return Verdict(Status.PASS, "request allowed")
    code = answer.fields["deniedResponse"].fields["status"]["code"]
    return Verdict(Status.FAIL, f"request denied with status code {code}")


def _http(answer: StructValue) -> Verdict:
    if "ok" in answer.fields:
        return Verdict(Status.PASS, "request allowed")
    return Verdict(Status.FAIL, f"request denied, reason: {answer.fields['denied'].fields['reason']}")


_VERDICTS: Final[Mapping[str, Callable[[StructValue], Verdict]]] = {"Envoy": _envoy, "HTTP": _http}


@dataclass(frozen=True, slots=True)
class AuthorizingCheck:
    """The validations of a policy, in order; `mode` is Envoy or HTTP.

    The result is a skip for a policy without an answer, for conditions that do not hold, and for an error under
    failurePolicy Ignore.
    """

    mode: str
    validations: tuple[Program, ...]
    conditions: tuple[CelCondition, ...] = ()
    variables: tuple[CelVariable, ...] = ()
    ignores_errors: bool = False

    def run(self, run: Run) -> Sequence[Verdict]:
        """Answer the request."""
        try:
            answer = self._answer(run)
        except PyvernoError as error:
            answer = None
            if not self.ignores_errors:
                return (Verdict(Status.ERROR, error.message),)
        return (Verdict(Status.SKIP, _NO_ANSWER) if answer is None else _VERDICTS[self.mode](answer),)

    def exempt(self, run: Run, exemptions: Sequence[Exemption]) -> Sequence[Verdict] | None:
        """Give an exempt request no verdict; an exception that only allows values changes nothing here."""
        keys = tuple(exemption.key for exemption in exemptions if exemption.is_full)
        return (Verdict(Status.SKIP, _NO_ANSWER, exceptions=keys),) if keys else None

    def _answer(self, run: Run) -> StructValue | None:
        request = read_check_request(self.mode, run.resource)
        session = CelSession(run, {"object": request}, self.variables)
        unmet = first_unmet(session.for_conditions(), self.conditions)
        if unmet is not None:
            if unmet.errors:
                raise EvaluationError("; ".join(unmet.errors))
            return None
        answers = (session.evaluate(validation) for validation in self.validations)
        return next((answer for answer in answers if answer is not None), None)
