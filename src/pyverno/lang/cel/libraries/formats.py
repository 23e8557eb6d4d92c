"""Kubernetes' named formats: names, labels, and the text formats of CRDs.

`validate` of a format returns the problems of a text, none for a valid one.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from typing import ClassVar, Final

from pyverno.errors import ValueSyntaxError
from pyverno.lang.cel.declarations import Declaration, Library, function
from pyverno.lang.cel.gourl import parse_request_uri
from pyverno.lang.cel.libraries.costs import value_size
from pyverno.lang.cel.types import opaque
from pyverno.lang.cel.values import NONE, Optional, Value
from pyverno.lang.cel.work import instant, reading, walking
from pyverno.lazyregex import regex
from pyverno.value import dataclass

__all__ = ["FORMATS", "NamedFormat"]

_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_LABEL_PATTERN: Final = regex("[a-z0-9](?:[-a-z0-9]*[a-z0-9])?")
_LABEL_1035_PATTERN: Final = regex("[a-z](?:[-a-z0-9]*[a-z0-9])?")
_NAME_PATTERN: Final = regex("[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?")
_UUID: Final = regex("(?i:[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12})")
_BASE64: Final = regex("(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})")
_TIME: Final = regex(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.[0-9]+)?(?:z|[+-][0-9]{2}:[0-9]{2})")

_LABEL_PROBLEM: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    f"an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '{_LABEL}')"
)
_SUBDOMAIN_PROBLEM: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    rf"'{_LABEL}(\.{_LABEL})*')"
)
_LABEL_1035_PROBLEM: Final = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)
_NAME_PART_PROBLEM: Final = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_LABEL_VALUE_PROBLEM: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


@dataclass(frozen=True, slots=True, eq=False)
class NamedFormat:
    """One format; `weight` is the length of the pattern that its cost assumes."""

    cel_type: ClassVar[str] = "kubernetes.NamedFormat"
    name: str
    problems: Callable[[str], list[str]]
    weight: int

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NamedFormat) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)


def _too_long(limit: int) -> str:
    return f"must be no more than {limit} bytes"


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _label(text: str) -> list[str]:
    problems = [_too_long(63)] if _size(text) > 63 else []
    if not _LABEL_PATTERN.fullmatch(text):
        # Kubernetes names the stricter rule when only its looser part holds
        problems.append(_LABEL_PROBLEM)
    return problems


def _is_subdomain(text: str) -> bool:
    return all(_LABEL_PATTERN.fullmatch(part) for part in text.split("."))


def _subdomain(text: str) -> list[str]:
    problems = [_too_long(253)] if _size(text) > 253 else []
    return problems if _is_subdomain(text) else [*problems, _SUBDOMAIN_PROBLEM]


def _label_1035(text: str) -> list[str]:
    problems = [_too_long(63)] if _size(text) > 63 else []
    return problems if _LABEL_1035_PATTERN.fullmatch(text) else [*problems, _LABEL_1035_PROBLEM]


def _as_prefix(check: Callable[[str], list[str]]) -> Callable[[str], list[str]]:
    def checked(text: str) -> list[str]:
        return check(text[:-1] + "a" if len(text) > 1 and text.endswith("-") else text)

    return checked


def _qualified_name(text: str) -> list[str]:
    parts = text.split("/")
    problems: list[str] = []
    if len(parts) > 2:
        return [
            "a qualified name must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
            "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
            "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' "
            "(e.g. 'example.com/MyName')"
        ]
    if len(parts) == 2:
        if not parts[0]:
            problems.append("prefix part must be non-empty")
        else:
            problems += [f"prefix part {problem}" for problem in _subdomain(parts[0])]
    name = parts[-1]
    if not name:
        problems.append("name part must be non-empty")
    elif _size(name) > 63:
        problems.append(f"name part {_too_long(63)}")
    if not _NAME_PATTERN.fullmatch(name):
        problems.append(_NAME_PART_PROBLEM)
    return problems


def _label_value(text: str) -> list[str]:
    problems = [_too_long(63)] if _size(text) > 63 else []
    return problems if not text or _NAME_PATTERN.fullmatch(text) else [*problems, _LABEL_VALUE_PROBLEM]


def _uri(text: str) -> list[str]:
    try:
        parse_request_uri(text)
    except ValueSyntaxError as error:
        return [error.message]
    return []


def _uuid(text: str) -> list[str]:
    return [] if _UUID.fullmatch(text) else ["does not match the UUID format"]


def _byte(text: str) -> list[str]:
    return [] if _BASE64.fullmatch(text) else ["invalid base64"]


def _is_date(text: str) -> bool:
    if len(text) != 10:
        return False
    try:
        datetime.date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _date(text: str) -> list[str]:
    return [] if _is_date(text) else ["invalid date"]


def _datetime(text: str) -> list[str]:
    date, _, time = text.lower().partition("t")
    match = _TIME.fullmatch(time)
    valid = match is not None and _is_date(date) and int(match[1]) < 24 and int(match[2]) < 60 and int(match[3]) < 61
    return [] if valid else ["invalid datetime"]


_FORMATS: Final = {
    "dns1123Label": NamedFormat("DNS1123Label", _label, 30),
    "dns1123Subdomain": NamedFormat("DNS1123Subdomain", _subdomain, 60),
    "dns1035Label": NamedFormat("DNS1035Label", _label_1035, 30),
    "qualifiedName": NamedFormat("QualifiedName", _qualified_name, 60),
    "dns1123LabelPrefix": NamedFormat("DNS1123LabelPrefix", _as_prefix(_label), 30),
    "dns1123SubdomainPrefix": NamedFormat("DNS1123SubdomainPrefix", _as_prefix(_subdomain), 60),
    "dns1035LabelPrefix": NamedFormat("DNS1035LabelPrefix", _as_prefix(_label_1035), 30),
    "labelValue": NamedFormat("LabelValue", _label_value, 40),
    "uri": NamedFormat("URI", _uri, 1_103),
    "uuid": NamedFormat("uuid", _uuid, 78),
    "byte": NamedFormat("byte", _byte, 84),
    "date": NamedFormat("date", _date, 104),
    "datetime": NamedFormat("datetime", _datetime, 104),
}


def _cost(args: tuple[Value, ...], _result: Value) -> int:
    weight: int = args[0].weight
    return math.ceil((1.0 + value_size(args[1])) * 0.1) * math.ceil(weight * 0.25)


@function("format.named", "(string) -> optional(kubernetes.NamedFormat)", work=reading())
def named(name: str) -> Optional:
    """The format of that name, when there is one.

    CEL: format.named('x').hasValue() ⇒ false
    """
    found = _FORMATS.get(name)
    return NONE if found is None else Optional(found)


@function("validate", "kubernetes.NamedFormat.(string) -> optional(list(string))", cost=_cost, work=walking(1, per=4))
def validate(value: NamedFormat, text: str) -> Optional:
    """The problems of a text, nothing when it is valid.

    CEL: format.dns1123Label().validate('a').hasValue() ⇒ false
    """
    problems = value.problems(text)
    return Optional(problems) if problems else NONE


def _constant(name: str, value: NamedFormat) -> Declaration:
    def get() -> NamedFormat:
        return value

    get.__doc__ = f"The format {value.name}.\n\nCEL: format.{name}() == format.named('{name}').value() ⇒ true"
    return function(f"format.{name}", "() -> kubernetes.NamedFormat", work=instant)(get)


FORMATS: Final = Library(
    "kubernetes.format",
    (named, validate, *(_constant(name, value) for name, value in _FORMATS.items())),
    types=(opaque("kubernetes.NamedFormat"),),
    introduced="1.31",
    doc="Named text formats.",
)
