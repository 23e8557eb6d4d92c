"""The Common Expression Language in the dialect of Kubernetes and Kyverno.

    text ── lexer, parser, macros ──► tree ── checker ──► types ── planner ──► closures (+ generated pass-check)

`Environment.compile(text)` gives a `Program`; `Program.evaluate(variables)` gives a value. Values are plain Python
objects (see `values`). Libraries are declared in `libraries`; everything they read from a cluster or
a registry comes through `CelHost`.
This package must never know a policy, and never do I/O.
"""

from __future__ import annotations

from pyverno.lang.cel import types
from pyverno.lang.cel.declarations import Library, StructProvider, function
from pyverno.lang.cel.environment import Environment
from pyverno.lang.cel.host import NO_CEL_HOST, CelHost
from pyverno.lang.cel.presets import STANDARD
from pyverno.lang.cel.program import Program, SubExpression
from pyverno.lang.cel.runtime.evaluation import CostMeter, Evaluation
from pyverno.lang.cel.syntax.source import CompileError, Issue

__all__ = [
    "NO_CEL_HOST",
    "STANDARD",
    "CelHost",
    "CompileError",
    "CostMeter",
    "Environment",
    "Evaluation",
    "Issue",
    "Library",
    "Program",
    "StructProvider",
    "SubExpression",
    "function",
    "types",
]
