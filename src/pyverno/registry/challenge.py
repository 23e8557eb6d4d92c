"""The `WWW-Authenticate` header of a registry: which token is wanted, from where."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from pyverno.lazyregex import regex
from pyverno.value import dataclass, field

__all__ = ["Challenge", "parse_challenges"]

_MAX_HEADER: Final = 8192
# possessive repeats match the same, and keep it linear: a registry may send blanks alone
_WORD: Final = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]++"
_START: Final = r"\s*+(?:,\s*+)?"
_SCHEME: Final = regex(rf"{_START}({_WORD})(?:\s++|$)(?!=)")
_PARAMETER: Final = regex(rf'{_START}({_WORD})\s*+=\s*+(?:"((?:[^"\\]|\\.)*+)"|({_WORD}))')
_ESCAPED: Final = regex(r"\\(.)")


@dataclass(frozen=True, slots=True)
class Challenge:
    """One way to authenticate; scheme and names of parameters are in lower case."""

    scheme: str
    parameters: Mapping[str, str] = field(default_factory=dict)


def parse_challenges(header: str) -> tuple[Challenge, ...]:
    """Return the challenges of a header; what cannot be read ends the list.

    >>> header = 'Bearer realm="https://auth.example.com/token",scope="repository:a:pull,push", Basic realm="x"'
    >>> [each.scheme for each in parse_challenges(header)]
    ['bearer', 'basic']
    >>> parse_challenges(header)[0].parameters["scope"]
    'repository:a:pull,push'
    """
    return tuple(_challenges(header[:_MAX_HEADER]))


def _challenges(header: str) -> Iterator[Challenge]:
    position = 0
    while (scheme := _SCHEME.match(header, position)) is not None:
        position = scheme.end()
        parameters: dict[str, str] = {}
        while (found := _PARAMETER.match(header, position)) is not None:
            quoted, plain = found[2], found[3]
            value = plain if quoted is None else _ESCAPED.sub(r"\1", quoted)
            parameters.setdefault(found[1].lower(), value)
            position = found.end()
        yield Challenge(scheme[1].lower(), parameters)
