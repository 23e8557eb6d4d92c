"""Projections of global context data: a JMESPath expression on what an entry holds."""

from __future__ import annotations

from collections.abc import Callable

from pyverno.kube.json import JSON
from pyverno.lang.jmespath import compile_expression
from pyverno.lang.runtime import Runtime
from pyverno.offline.system import OfflineSystem

__all__ = ["compile_projection", "project"]


def compile_projection(expression: str) -> Callable[[JSON], JSON]:
    """Return a function that evaluates an expression; both raise ExpressionError.

    >>> names = compile_projection("[].name")
    >>> names([{"name": "a"}]), names([])
    (['a'], [])
    """
    compiled = compile_expression(expression)
    return lambda data: compiled.evaluate(data, Runtime(OfflineSystem()))


def project(data: JSON, expression: str) -> JSON:
    """Evaluate an expression on data; raises ExpressionError.

    >>> project([{"name": "a"}], "[].name")
    ['a']
    """
    return compile_projection(expression)(data)
