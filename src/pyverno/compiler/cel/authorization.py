"""Lowering of ValidatingPolicies that answer authorization requests of proxies (evaluation modes Envoy and HTTP)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyverno.compiler.cel.environment import CelCompiler
from pyverno.compiler.parser import Parser
from pyverno.engine.actions.cel.authorize import AuthorizingCheck
from pyverno.lang.cel import types
from pyverno.lang.cel.libraries.authz import ENVOY_RESPONSE, HTTP_RESPONSE
from pyverno.lang.cel.presets import authz_environment
from pyverno.lang.cel.types import Type
from pyverno.policy.cel.blocks import EvaluationMode
from pyverno.policy.cel.policies import ValidatingPolicy

__all__ = ["ANSWERING", "lower_authorization"]

ANSWERING: Final[Mapping[EvaluationMode, Type]] = {
    EvaluationMode.ENVOY: ENVOY_RESPONSE,
    EvaluationMode.HTTP: HTTP_RESPONSE,
}
"""The modes whose policies answer authorization requests, and the type of their answers."""

_NAMESPACED = "the evaluation mode {mode} is for policies of the whole cluster: use kind ValidatingPolicy"


def lower_authorization(policy: ValidatingPolicy, parser: Parser) -> AuthorizingCheck:
    """Compile the expressions of a policy; what does not compile is reported to the parser."""
    spec = policy.spec
    mode = spec.evaluation.mode
    if policy.is_namespaced:
        # Kyverno: namespaced policies of these modes never run, without a message
        parser.report(_NAMESPACED.format(mode=mode.value), ("spec", "evaluation", "mode"), code="unsupported-mode")
    environment = authz_environment(mode.value)
    compiler = CelCompiler(environment, parser, names=environment.variables, is_payload=True)
    conditions = compiler.conditions(spec.match_conditions)
    variables = compiler.variables(spec.variables)
    validations = []
    for each in spec.validations:
        path = (*each.path, "expression")
        program = compiler.compile(each.expression, path)
        if program is None:
            continue
        if program.type not in (ANSWERING[mode], types.NULL):
            text = f"rule response output is expected to be of type {ANSWERING[mode].name}"
            parser.report(text, path, code="cel-compile")
        validations.append(program)
    return AuthorizingCheck(
        mode=mode.value,
        validations=tuple(validations),
        conditions=conditions,
        variables=variables,
        ignores_errors=spec.failure_policy.value == "Ignore",
    )
