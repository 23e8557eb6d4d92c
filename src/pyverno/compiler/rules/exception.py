"""Lowering of PolicyExceptions for legacy policies."""

from __future__ import annotations

from pyverno.compiler.parser import Parser, lower_conditions
from pyverno.compiler.rules.matching import lower_matcher
from pyverno.engine.rules.exceptions import CompiledException
from pyverno.errors import PolicyError
from pyverno.podsecurity import compile_excludes
from pyverno.policy.exception import PolicyException

__all__ = ["lower_exception"]


def lower_exception(exception: PolicyException) -> tuple[CompiledException, tuple[PolicyError, ...]]:
    """Compile an exception; returns it with everything that does not parse (then it must not be used)."""
    parser = Parser(exception.document)
    spec = exception.spec
    compiled = CompiledException(
        name=exception.name,
        namespace=exception.namespace or "default",
        references=tuple(
            (reference.policy_name, rule) for reference in spec.exceptions for rule in reference.rule_names
        ),
        matcher=lower_matcher(spec.match, None, for_rule=False),
        conditions=lower_conditions(spec.conditions, parser, ("spec", "conditions"), blocks=True, excuse=True),
        pod_security=compile_excludes([exclude.raw for exclude in spec.pod_security]),
        background=spec.background,
    )
    return compiled, tuple(parser.errors)
