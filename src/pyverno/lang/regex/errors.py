"""The error of Go's regexp for a pattern that does not parse, made from that of RE2's library for C++."""

from __future__ import annotations

from typing import Final

__all__ = ["go_reason"]

_GO_REASONS: Final = {
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "no argument for repetition operator": "missing argument to repetition operator",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid repetition size": "invalid repeat count",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
    "trailing \\": "trailing backslash at end of expression",
    "pattern too large": "expression too large",
}
_WHOLE_PATTERN: Final = frozenset({"missing )", "unexpected )"})


def go_reason(error: Exception, pattern: str) -> str:
    """Return the reason with the part of the pattern that Go names.

    >>> go_reason(ValueError(b"missing ): ("), "a(")
    'missing closing ): `a(`'
    """
    raw = error.args[0] if error.args else b""
    text = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else str(raw)
    reason, _, part = text.partition(": ")
    if reason in _WHOLE_PATTERN:
        part = pattern
    return f"{_GO_REASONS.get(reason, reason)}: `{part}`"
