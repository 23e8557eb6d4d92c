"""matchConditions of webhooks: CEL expressions that decide whether a webhook is called at all.

They see `object`, `oldObject`, `request` and `authorizer`. A false condition outweighs errors; the webhook's
failurePolicy judges errors.
"""

from __future__ import annotations

from kubesandbox.admission.policies.authorizinghost import authorizing_host
from kubesandbox.authorization.access import Authorizer
from pyverno.compiler.cel.environment import CelCompiler
from pyverno.compiler.parser import Parser
from pyverno.engine.cel.session import CONDITIONS_COST, authorizer_bindings, request_bindings
from pyverno.engine.request import Request
from pyverno.errors import EvaluationError, PyvernoError
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.yaml.documents import Document
from pyverno.lang.cel import CostMeter, types
from pyverno.lang.cel.libraries.authorizer import AUTHORIZER_NAMES
from pyverno.lang.cel.presets import kubernetes_environment
from pyverno.lang.runtime import Runtime

__all__ = ["MatchConditions"]


class MatchConditions:
    """The compiled conditions of one webhook."""

    def __init__(self, webhook: JSONObject, kube_version: tuple[int, int]) -> None:
        """Compile the conditions of a webhook; one that does not compile fails at each evaluation."""
        parser = Parser(Document(webhook))
        compiler = CelCompiler(kubernetes_environment(kube_version), parser, names=AUTHORIZER_NAMES)
        listed: JSON = webhook.get("matchConditions")
        texts = [str(each.get("expression") or "") for each in listed or () if isinstance(each, dict)]
        self._programs = [(text, compiler.compile(text, ("matchConditions",), expected=types.BOOL)) for text in texts]
        self._problem = parser.errors[0].message if parser.errors else ""

    def hold(self, request: Request, authorizer: Authorizer) -> bool:
        """Return whether all conditions are true; raises EvaluationError when some fail and none is false."""
        if self._problem:
            raise EvaluationError(f"compilation error: {self._problem}")
        bindings = {**request_bindings(request, has_objects=False), **authorizer_bindings(request)}
        bindings.pop("namespaceObject", None)  # Kubernetes: conditions of webhooks do not have this variable
        host = authorizing_host(authorizer, request.user)
        meter = CostMeter(limit=CONDITIONS_COST)
        problems: list[str] = []
        for text, program in self._programs:
            if program is None:
                continue
            try:
                if program.evaluate(bindings, Runtime(), host=host, meter=meter) is not True:
                    return False
            except PyvernoError as error:
                problems.append(f"expression '{text.strip()}' resulted in error: {error.message}")
        if problems:
            unique = list(dict.fromkeys(problems))
            raise EvaluationError(unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]")
        return True
