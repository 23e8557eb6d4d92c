"""The strings library: characters, searching, splitting, joining, formatting.

Versions are cel-go's: Kubernetes has version 0 before 1.29 and version 2 since (`format` and `strings.quote` came with
1, `reverse` with 3, the locale-free formatting with 4). Positions count code points.
"""

from __future__ import annotations

from typing import Final

from pyverno.errors import EvaluationError
from pyverno.lang.cel.declarations import Library, function
from pyverno.lang.cel.faults import OperandError
from pyverno.lang.cel.libraries.costs import by_element, by_result, by_size
from pyverno.lang.cel.libraries.formatting import format_locale_free, format_with_locale
from pyverno.lang.cel.runtime.evaluation import Evaluation
from pyverno.lang.cel.values import INT_MAX, Value, type_name
from pyverno.lang.cel.work import instant, nodes, reading, together, walking

__all__ = ["STRINGS"]

SHORT: Final = 16

_SPACES: Final = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
_ESCAPES: Final = str.maketrans(
    {
        "\a": "\\a",
        "\b": "\\b",
        "\f": "\\f",
        "\n": "\\n",
        "\r": "\\r",
        "\t": "\\t",
        "\v": "\\v",
        "\\": "\\\\",
        '"': '\\"',
    }
)
_LOWER: Final = str.maketrans({chr(code): chr(code + 32) for code in range(65, 91)})
_UPPER: Final = str.maketrans({chr(code): chr(code - 32) for code in range(97, 123)})


def _outside(position: int) -> EvaluationError:
    return OperandError("index out of range", f"index out of range: {position}")


@function("charAt", "string.(int) -> string", work=instant)
def char_at(text: str, position: int) -> str:
    """The character at a position; empty at the end of the text.

    CEL: 'hello'.charAt(4) ⇒ 'o'
    """
    if not 0 <= position <= len(text):
        raise _outside(position)
    return text[position : position + 1]


@function("indexOf", "string.(string) -> int", "string.(string, int) -> int", cost=by_element, work=walking(per=64))
def index_of(text: str, part: str, start: int = 0) -> int:
    """The position of the first occurrence at or after a start, -1 when there is none.

    CEL: 'hello mellow'.indexOf('ello', 2) ⇒ 7
    """
    if start < 0:
        raise _outside(start)
    if not part:
        return min(start, len(text))
    return text.find(part, start)


@function("lastIndexOf", "string.(string) -> int", "string.(string, int) -> int", cost=by_element, work=walking(per=64))
def last_index_of(text: str, part: str, start: int | None = None) -> int:
    """The position of the last occurrence at or before a start, -1 when there is none.

    CEL: 'hello mellow'.lastIndexOf('ello', 6) ⇒ 1
    """
    if start is None:
        return _last(text, part)
    if start < 0:
        raise _outside(start)
    if not part:
        return min(start, len(text))
    if start >= len(text):
        return -1
    return _last(text[: start + len(part)], part)


def _last(text: str, part: str) -> int:
    """Return where a part is last; Python's own `rfind` takes time by the product of both lengths."""
    if len(part) < SHORT:
        return text.rfind(part)
    found = text[::-1].find(part[::-1])
    return found if found < 0 else len(text) - found - len(part)


@function("lowerAscii", "string.() -> string", cost=by_size(), work=walking(per=16))
def lower_ascii(text: str) -> str:
    """The text with A-Z in lower case.

    CEL: 'TacoCÆt'.lowerAscii() ⇒ 'tacocÆt'
    """
    return text.translate(_LOWER)


@function("upperAscii", "string.() -> string", cost=by_size(), work=walking(per=16))
def upper_ascii(text: str) -> str:
    """The text with a-z in upper case.

    CEL: 'tacocat'.upperAscii() ⇒ 'TACOCAT'
    """
    return text.translate(_UPPER)


@function(
    "replace",
    "string.(string, string) -> string",
    "string.(string, string, int) -> string",
    cost=by_size(0, 2),
    in_context=True,
    work=together(reading(0, per_step=32), reading(1), reading(2)),
)
def replace(evaluation: Evaluation, text: str, old: str, new: str, count: int = -1) -> str:
    """The text with occurrences replaced, at most `count` of them when that is not negative.

    CEL: 'hello hello'.replace('he', 'we', 1) ⇒ 'wello hello'
    """
    times = text.count(old) if count < 0 else min(text.count(old), count)
    evaluation.produce(len(text) + times * max(len(new) - len(old), 0))
    return text.replace(old, new, min(count, INT_MAX) if count >= 0 else -1)


@function(
    "split",
    "string.(string) -> list(string)",
    "string.(string, int) -> list(string)",
    cost=by_size(0, 2),
    work=walking(per=8),
)
def split(text: str, separator: str, count: int = -1) -> list[str]:
    """The parts between separators, at most `count` of them when that is not negative.

    CEL: 'a,b,c'.split(',', 2) ⇒ ['a', 'b,c']
    """
    if count == 0:
        return []
    if not separator:
        if count < 0 or count >= len(text):
            return list(text)
        return [*text[: count - 1], text[count - 1 :]]
    return text.split(separator, min(count, INT_MAX) - 1 if count > 0 else -1)


@function("substring", "string.(int) -> string", "string.(int, int) -> string", cost=by_size(), work=reading())
def substring(text: str, start: int, end: int | None = None) -> str:
    """The part of a text from a start to before an end.

    CEL: 'tacocat'.substring(0, 4) ⇒ 'taco'
    """
    if end is None:
        end = len(text)
    elif start > end:
        raise OperandError("invalid substring range", f"invalid substring range. start: {start}, end: {end}")
    if not 0 <= start <= len(text):
        raise _outside(start)
    if not 0 <= end <= len(text):
        raise _outside(end)
    return text[start:end]


@function("trim", "string.() -> string", cost=by_size(), work=reading(per_step=64))
def trim(text: str) -> str:
    """The text without white space at its ends.

    CEL: '  a b '.trim() ⇒ 'a b'
    """
    return text.strip(_SPACES)


@function(
    "join",
    "list(string).() -> string",
    "list(string).(string) -> string",
    cost=by_result(2),
    in_context=True,
    work=walking(per=4),
)
def join(evaluation: Evaluation, parts: Value, separator: str = "") -> str:
    """The texts of a list one after the other, with a separator between them.

    CEL: ['a', 'b'].join('-') ⇒ 'a-b'
    """
    for part in parts:
        if not isinstance(part, str):
            raise OperandError(f"join: invalid input of type {type_name(part)}", f"join: invalid input: {part}")
    evaluation.produce(sum(map(len, parts)) + len(separator) * len(parts))
    return separator.join(parts)


@function(
    "format",
    "string.(list(dyn)) -> string",
    cost=by_size(),
    in_context=True,
    since=(1,),
    until=(4,),
    work=together(walking(per=1), nodes(1, bytes_per_step=64)),
)
def format_(evaluation: Evaluation, text: str, values: Value) -> str:
    """The text with its clauses (`%s %d %f %e %b %x %X %o`) filled in.

    CEL: '%s is %d'.format(['age', 7]) ⇒ 'age is 7'
    """
    return format_with_locale(text, values, evaluation.produce)


@function(
    "format",
    "string.(list(dyn)) -> string",
    cost=by_size(),
    in_context=True,
    since=(4,),
    work=together(walking(per=1), nodes(1, bytes_per_step=64)),
)
def format_4(evaluation: Evaluation, text: str, values: Value) -> str:
    """The text with its clauses filled in, without regard to any locale.

    CEL: '%.2f'.format([1.234]) ⇒ '1.23'
    """
    return format_locale_free(text, values, evaluation.produce)


@function("strings.quote", "(string) -> string", cost=by_size(), since=(1,), work=walking(per=4))
def quote(text: str) -> str:
    """The text in double quotes, with CEL's escapes.

    CEL: strings.quote('a"b') ⇒ '"a\\\\"b"'
    """
    cleaned = "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in text)
    return f'"{cleaned.translate(_ESCAPES)}"'


@function("reverse", "string.() -> string", cost=by_size(), since=(3,), work=reading(per_step=64))
def reverse(text: str) -> str:
    """The text backwards.

    CEL: 'abc'.reverse() ⇒ 'cba'
    """
    return text[::-1]


STRINGS: Final = Library(
    "strings",
    (
        char_at, index_of, last_index_of, lower_ascii, upper_ascii, replace, split, substring, trim, join,
        format_, format_4, quote, reverse,
    ),
    introduced="1.0",
    doc="Characters, searching, splitting, joining and formatting of texts.",
)  # fmt: skip
