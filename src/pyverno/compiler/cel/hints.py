"""Advice about expressions that do not compile: the names that were probably meant."""

from __future__ import annotations

from collections.abc import Iterator

from pyverno.lang.cel.syntax.source import CompileError
from pyverno.spelling import did_you_mean

__all__ = ["compile_hint"]

_MOST = 3
_MOST_VARIABLES = 50
"""Of a policy that is searched: one with more may have as many expressions that name none of them."""


def compile_hint(error: CompileError, variables: tuple[str, ...] = ()) -> str:
    """Return which names were probably meant, the empty text without any; `variables` are those of the policy.

    >>> from pyverno.compiler.cel.environment import environment_of_kind
    >>> try:
    ...     environment_of_kind("ValidatingPolicy").compile("'a'.startWith('b')")
    ... except CompileError as error:
    ...     compile_hint(error)
    'startWith: did you mean `startsWith`?'
    """
    return "; ".join(dict.fromkeys(_hints(error, variables)))


def _hints(error: CompileError, variables: tuple[str, ...]) -> Iterator[str]:
    for issue in error.issues[:_MOST]:
        if not issue.unknown:
            continue
        # the only structs whose fields authors name are the variables of the policy
        found = did_you_mean(issue.unknown, issue.known or variables[:_MOST_VARIABLES])
        if found:
            yield f"{issue.unknown}{found}"
