"""Projections of global context data: a JMESPath expression on what an entry holds."""

from __future__ import annotations

from pyverno.kube.json import JSON
from pyverno.lang.jmespath import compile_expression
from pyverno.lang.runtime import Runtime
from pyverno.offline.system import System

__all__ = ["project"]


def project(data: JSON, expression: str) -> JSON:
    """Evaluate an expression on data; raises ExpressionError.

    >>> project([{"name": "a"}], "[].name")
    ['a']
    """
    return compile_expression(expression).evaluate(data, Runtime(System()))
