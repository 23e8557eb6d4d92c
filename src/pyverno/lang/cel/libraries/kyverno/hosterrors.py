"""Errors of the host as CEL errors; what an expression computed is hidden in them."""

from __future__ import annotations

from base64 import b64encode
from typing import Final
from urllib.parse import quote

from pyverno.errors import EvaluationError, HostError
from pyverno.kube.json import encode
from pyverno.lang.cel.faults import OperandError
from pyverno.lang.cel.values import Optional, StructValue, Value
from pyverno.value import dataclass

__all__ = ["HostErrors"]

_LEFT_OUT: Final = "..."
_MAX_PARTS: Final = 100
_LONGEST: Final = 1_024


@dataclass(frozen=True, slots=True)
class HostErrors:
    """Turns errors of the host into CEL errors that start with a prefix, within a `with` block.

    Such errors quote names and addresses: they are shown where the expression writes them, and hidden where it
    computes them. An OperandError brings both texts itself.

    >>> with HostErrors("failed to get resource", ("web",)):
    ...     raise HostError("web is gone")
    Traceback (most recent call last):
    pyverno.lang.cel.faults.OperandError: failed to get resource: ... is gone

    Not a generator: since Python 3.12, the frames of one that an error is thrown into keep the error in a cycle.
    """

    prefix: str
    operands: tuple[Value, ...]

    def __enter__(self) -> None:
        """Do nothing."""

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        """Raise the CEL error."""
        if isinstance(error, OperandError):
            raise OperandError(error.message, error.detailed) from None
        if isinstance(error, (HostError, EvaluationError)):
            words = "" if isinstance(error, EvaluationError) else f"{self.prefix}: "
            raise OperandError(words + _hide(error.message, self.operands), words + error.message) from None


def _hide(text: str, operands: tuple[Value, ...]) -> str:
    """Replace the texts in the operands of a call, however deep, wherever they are as whole words of a text.

    Of operands with many or long texts, nothing of the text is left.
    """
    waiting, found = list(operands), set[str]()
    while waiting:
        value = waiting.pop()
        if len(found) > _MAX_PARTS or len(waiting) > _MAX_PARTS or (isinstance(value, str) and len(value) > _LONGEST):
            return _LEFT_OUT
        if isinstance(value, str) and value:
            found |= {value, quote(value, safe=""), encode(value)[1:-1]}
        elif isinstance(value, (list, tuple)):
            waiting.extend(value)
        elif isinstance(value, dict):
            waiting.extend([*value.keys(), *value.values()])
        elif isinstance(value, bytes):
            waiting.append(b64encode(value).decode("ascii"))
        elif isinstance(value, Optional):
            waiting.append(value.value)
        elif isinstance(value, StructValue):
            waiting.append(value.fields)
    for part in sorted(found, key=len, reverse=True):
        text = _hide_word(text, part)
    return text


def _hide_word(text: str, word: str) -> str:
    """Replace a word, but not where it is a part of a longer one."""
    pieces: list[str] = []
    start = at = 0
    while (at := text.find(word, at)) >= 0:
        end = at + len(word)
        edges = (text[at - 1 : at] + word[0], word[-1] + text[end : end + 1])
        if not any(len(edge) > 1 and edge.isalnum() for edge in edges):
            pieces += [text[start:at], _LEFT_OUT]
            start = end
        at = end
    return "".join([*pieces, text[start:]])
