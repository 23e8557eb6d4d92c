"""Kyverno's dialect of JMESPath: a fork in which a missing key is an error, with Kyverno's own functions.

Expressions are compiled once into closures and evaluated many times. The package knows values and expressions; it
must never read a clock, a random source or a name server except through the runtime it is given, and must never parse
data as an expression.
"""

from __future__ import annotations

from pyverno.lang.jmespath.ast import Node, NodeType, dump
from pyverno.lang.jmespath.expression import EVERYTHING, Expression, compile_expression, parse_expression
from pyverno.lang.jmespath.function import Function
from pyverno.lang.jmespath.functions import FUNCTIONS
from pyverno.lang.jmespath.parser import parse

__all__ = [
    "EVERYTHING",
    "FUNCTIONS",
    "Expression",
    "Function",
    "Node",
    "NodeType",
    "compile_expression",
    "dump",
    "parse",
    "parse_expression",
]
