"""Functions with regular expressions: RE2 only, linear in the text, with Go's texts of errors.

Patterns come from policies and from data alike, so `lang.regex` bounds and compiles them, never Python's `re`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from pyverno.errors import BudgetExceededError, EvaluationError
from pyverno.kube.json import JSON
from pyverno.lang.jmespath.cost import READ
from pyverno.lang.jmespath.function import BOOL, NUMBER, STRING, failure, function
from pyverno.lang.jmespath.functions.text import scalar_text
from pyverno.lang.regex.compiler import compile_re2, recent_patterns
from pyverno.lang.runtime import Budget, Runtime
from pyverno.lazyregex import regex

__all__ = ["FUNCTIONS", "compile_pattern"]

# Go: regexp.Expand. `$$` is a dollar; a `$` that starts nothing stands for itself.
_REFERENCE: Final = regex(r"\$(?:(\$)|\{(\w+)\}|(\w+))")


_BYTES_PER_SEARCH: Final = 2048
_MAX_WORK: Final = 32 * 1024 * 1024
_WORK_PER_STEP: Final = 1024


compile_pattern: Final = recent_patterns(compile_re2, lambda made: made, 64)
"""Compile a pattern; the most recent ones are remembered, with a mebibyte each at most."""


@function(
    "regex_match",
    STRING,
    (STRING, NUMBER),
    returns=BOOL,
    cost=READ,
    note="checks whether a regular expression matches somewhere",
)
def regex_match(runtime: Runtime, pattern: str, value: JSON) -> JSON:
    """Return whether an RE2 expression matches somewhere in a text or number; anchor it with `^` and `$`.

    >>> regex_match('^1[0-9]$', `12`)
    true
    >>> regex_match('(', 'x')
    error: error parsing regexp: missing closing )
    """
    compiled, text = compile_pattern(pattern), _utf8(value)
    _charge_match(compiled, text, runtime.budget)
    return compiled.search(text) is not None


@function(
    "regex_replace_all",
    STRING,
    (STRING, NUMBER),
    (STRING, NUMBER),
    returns=STRING,
    cost=READ,
    note="replaces every match of a regular expression; `$1` and `${name}` stand for groups",
)
def regex_replace_all(runtime: Runtime, pattern: str, source: JSON, replacement: JSON) -> JSON:
    """Replace every match; `$1` and `${name}` stand for groups, an unknown group is empty.

    >>> regex_replace_all('([a-z])([0-9])', 'a1b2', '$2$1')
    "1a2b"
    """
    compiled = _compile_for("regex_replace_all", pattern)
    return _replace(compiled, _utf8(source), _expander(compiled, scalar_text(replacement)), runtime.budget)


@function(
    "regex_replace_all_literal",
    STRING,
    (STRING, NUMBER),
    (STRING, NUMBER),
    returns=STRING,
    cost=READ,
    note="replaces every match of a regular expression by a fixed text",
)
def regex_replace_all_literal(runtime: Runtime, pattern: str, source: JSON, replacement: JSON) -> JSON:
    """Replace every match by a text, in which `$` means nothing.

    >>> regex_replace_all_literal('([a-z])', 'ab', '$1')
    "$1$1"
    """
    compiled = _compile_for("regex_replace_all_literal", pattern)
    literal = _utf8(replacement)
    return _replace(compiled, _utf8(source), lambda _found: literal, runtime.budget)


def _charge_match(pattern: Any, text: bytes, budget: Budget) -> None:
    """Charge for one search: at worst every byte is held against every instruction of the program."""
    work = len(text) * int(pattern.programsize)
    if work > _MAX_WORK:
        raise BudgetExceededError("a text is too long for so large a regular expression", resource="bytes")
    budget.charge_bytes(work, per_step=_WORK_PER_STEP)


def _utf8(value: JSON) -> bytes:
    return scalar_text(value).encode("utf-8", "replace")


def _compile_for(name: str, pattern: str) -> Any:
    try:
        return compile_pattern(pattern)
    except EvaluationError as error:
        raise failure(name, error.message, detailed=error.detailed) from None


def _replace(pattern: Any, source: bytes, expand: Callable[[Any], bytes], budget: Budget) -> str:
    """Replace matches as Go does: an empty match right behind another match counts for nothing."""
    pieces: list[bytes] = []
    size, end = len(source), 0
    _charge_match(pattern, source, budget)
    for found in pattern.finditer(source):
        start, stop = found.span()
        if stop == start and (_splits_rune(source, start) or (stop == end and start)):
            continue
        replacement = expand(found)
        # each search may have read the text to its end
        budget.charge_steps(1 + (len(source) - start) // _BYTES_PER_SEARCH)
        size += len(replacement) - (stop - start)
        if size > budget.text_bytes:
            budget.produce(size)
        pieces += (source[end:start], replacement)
        end = stop
    pieces.append(source[end:])
    budget.produce(size)
    return b"".join(pieces).decode("utf-8", "replace")


def _splits_rune(source: bytes, position: int) -> bool:
    return position < len(source) and source[position] & 0xC0 == 0x80


def _expander(pattern: Any, template: str) -> Callable[[Any], bytes]:
    """Compile a replacement: a list of fixed pieces and group numbers (None for a group that is not there)."""
    pieces: list[bytes | int | None] = []
    position = 0
    for reference in _REFERENCE.finditer(template):
        pieces.append(_utf8(template[position : reference.start()]))
        name = reference.group(2) or reference.group(3)
        pieces.append(b"$" if name is None else _group(pattern, name))
        position = reference.end()
    pieces.append(_utf8(template[position:]))
    if len(pieces) == 1:
        literal = _utf8(template)
        return lambda _found: literal
    return lambda found: b"".join(
        piece if isinstance(piece, bytes) else (found.group(piece) or b"") for piece in pieces if piece is not None
    )


def _group(pattern: Any, name: str) -> int | None:
    if name.isascii() and name.isdigit() and (name == "0" or name[0] != "0") and len(name) < 9:
        return int(name) if int(name) <= pattern.groups else None
    return next((index for key, index in pattern.groupindex.items() if key in (name, name.encode())), None)


FUNCTIONS: Final = (regex_match, regex_replace_all, regex_replace_all_literal)
