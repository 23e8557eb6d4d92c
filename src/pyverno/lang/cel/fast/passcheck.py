"""The fast tier of CEL: generated functions that answer only "true".

    passes(variables) is True  =>  the closures give true, within their cost limit

Anything else, an exception inside included, means "ask the closures". A generated function may therefore give up on
whatever is rare: numbers of mixed types, structs, long texts. Several expressions become one function that looks up
each shared path once, and computes each shared variable once.

The cost limit holds without counting: the function carries a bound of what the closures can have spent (`cost`), which
a loop raises before it runs by its length times the most that one visit can cost; above the limit of one expression the
function gives up. So its own steps are bounded too, whatever the object. This module writes templates and integers only
(see `codegen`); no text of an expression enters the source. It must never decide that an expression is false.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from pyverno.errors import EvaluationError
from pyverno.lang.cel.checking.checked import Checked
from pyverno.lang.cel.fast.cost import BeyondError, end_unit
from pyverno.lang.cel.fast.truths import TruthWriter
from pyverno.lang.cel.fast.variables import TOP
from pyverno.lang.cel.values import Value
from pyverno.lang.codegen import Source
from pyverno.value import dataclass

__all__ = ["COST_LIMIT", "Claim", "PassCheck", "compile_pass_check", "fuse"]

PassCheck: TypeAlias = Callable[[Mapping[str, Value]], bool]

COST_LIMIT: Final = 1_000_000
OBJECT: Final = "object"
_FALLBACK: Final = (Exception,)


@dataclass(frozen=True, slots=True, eq=False)
class Claim:
    """Expressions about `object` that must all be true, and the variables (`variables.NAME`) that they may read.

    A variable sees those before it. `limit` is the cost that no expression may exceed, variables included: the claim
    as a whole stays below it.
    """

    expressions: tuple[Checked, ...]
    variables: tuple[tuple[str, Checked], ...] = ()
    limit: int = COST_LIMIT

    @property
    def is_provable(self) -> bool:
        """Whether there is a pass-check of this claim."""
        return _write_claims((self,), {OBJECT: 0}) is not None


def compile_pass_check(*expressions: Checked, limit: int = COST_LIMIT) -> PassCheck | None:
    """Generate the pass-check of boolean expressions that must all be true; None when one is beyond it.

    Variables come as a mapping; missing ones make the answer False. `limit` is what all expressions together may cost.

    >>> from pyverno.lang.cel import STANDARD, types
    >>> checked = STANDARD.with_variables({"x": types.DYN}).check("x.a.startsWith('b') && size(x.c) < 2")
    >>> passes = compile_pass_check(checked)
    >>> passes({"x": {"a": "bc", "c": []}}), passes({"x": {}})
    (True, False)
    """
    source = _write_claims((Claim(expressions, limit=limit),), None)
    return None if source is None else source.build()


def fuse(claims: Sequence[Claim]) -> Callable[[Value], bool] | None:
    """Generate one function of `object` that answers True only when every claim holds; None when one is beyond it.

    What claims read alike, variables that are defined alike included, is computed once; each claim is still charged
    for all of it.
    """
    source = _write_claims(claims, {OBJECT: 0})
    return None if source is None else source.build()


def _write_claims(claims: Sequence[Claim], roots: Mapping[str, int] | None) -> Source | None:
    source = Source(arguments=1)
    writer = TruthWriter(source, roots)
    errors = source.constant(_FALLBACK)
    try:
        source.line(0, "try:")
        for claim in claims:
            _write(claim, writer)
        source.line(TOP, "return True")
        source.line(0, "except c{}:", errors)
        source.line(1, "return False")
    except (BeyondError, EvaluationError, ValueError, RecursionError):
        return None
    return source


def _write(claim: Claim, writer: TruthWriter) -> None:
    writer.begin_rule(claim.expressions, dict(claim.variables), claim.limit)
    for checked in claim.expressions:
        writer.checked = checked
        writer.require(checked.root, TOP)
    end_unit(writer.rule)
