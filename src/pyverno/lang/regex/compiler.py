"""Compiles the regular expressions of policies and of data with RE2, under one limit of length.

RE2 never backtracks, so that a search takes time in proportion to the text. Python's own engine does backtrack: this
module and its callers must never use it for an expression that comes from a policy or from data.
"""

from __future__ import annotations

from typing import Any, Final

import re2

from pyverno.errors import EvaluationError
from pyverno.lang.regex.errors import go_reason

__all__ = ["MAX_PATTERN", "compile_re2"]

MAX_PATTERN: Final = 1024
"""Longest accepted pattern, in bytes."""


def compile_re2(pattern: str) -> Any:  # the package has no types
    """Return a compiled pattern for texts and UTF-8 bytes.

    Raises EvaluationError with Go's text, whose `detailed` form quotes the pattern.

    >>> compile_re2("a+").search(b"caab").span()
    (1, 3)
    """
    if len(pattern.encode("utf-8", "replace")) > MAX_PATTERN:
        raise EvaluationError(f"error parsing regexp: pattern is longer than {MAX_PATTERN} bytes")
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        reason = f"error parsing regexp: {go_reason(error, pattern)}"
        raise EvaluationError(reason.partition(": `")[0], detailed=reason) from None
    except UnicodeEncodeError:
        raise EvaluationError("error parsing regexp: invalid UTF-8") from None
