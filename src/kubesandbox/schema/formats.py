"""String formats of OpenAPI schemas, as the API server checks them.

A format that is not in the table is no constraint.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from typing import Final

from kubesandbox.schema.scalars import MismatchError, UnreadableError, read_bytes
from pyverno.errors import ValueSyntaxError
from pyverno.kube.time.duration import try_duration
from pyverno.kube.time.gotime import RFC3339, parse_time

__all__ = ["format_test"]

_HEX: Final = "[0-9a-f]"
_DATE: Final = re.compile(r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])")
_MAC: Final = re.compile(r"[0-9A-Fa-f]{2}([:-])[0-9A-Fa-f]{2}(\1[0-9A-Fa-f]{2}){4}|([0-9A-Fa-f]{4}\.){2}[0-9A-Fa-f]{4}")
_HOST: Final = re.compile(r"[a-zA-Z0-9](([-\w]){0,61}[a-zA-Z0-9])?(\.[a-zA-Z0-9](([-\w]){0,61}[a-zA-Z0-9])?)*\.?")
_SCALA: Final = re.compile(r"[-+]?\d+(\.\d+)?\s*(ns|nano|nanos?econds?|us|µs|micros?|microseconds?|ms|millis?|"
                           r"milliseconds?|s|sec|seconds?|m|minutes?|h|hr|hours?|d|days?|w|weeks?)")  # fmt: skip


def _pattern(text: str) -> Callable[[str], bool]:
    compiled = re.compile(text, re.IGNORECASE)
    return lambda value: compiled.fullmatch(value) is not None


def _uuid(version: str, variant: str) -> Callable[[str], bool]:
    return _pattern(f"{_HEX}{{8}}-?{_HEX}{{4}}-?{version}{_HEX}{{3}}-?{variant}{_HEX}{{3}}-?{_HEX}{{12}}")


def _is_time(value: str) -> bool:
    try:
        parse_time(RFC3339, value.upper())
    except ValueSyntaxError:
        return False
    return True


def _is_base64(value: str) -> bool:
    try:
        read_bytes(value)
    except (MismatchError, UnreadableError):
        return False
    return True


def _is_address(version: int) -> Callable[[str], bool]:
    def test(value: str) -> bool:
        try:
            return ipaddress.ip_address(value).version == version
        except ValueError:
            return False

    return test


def _is_network(value: str) -> bool:
    try:
        ipaddress.ip_network(value, strict=False)
    except ValueError:
        return False
    return "/" in value


def _is_uri(value: str) -> bool:
    return bool(re.match(r"[A-Za-z][A-Za-z0-9+.-]*:|/", value)) and not re.search(r"[\x00-\x20\x7f]", value)


def _is_duration(value: str) -> bool:
    return try_duration(value) is not None or _SCALA.fullmatch(value) is not None


def _is_day(value: str) -> bool:
    return _DATE.fullmatch(value) is not None


_TESTS: Final[Mapping[str, Callable[[str], bool]]] = {
    "datetime": _is_time,
    "date": _is_day,
    "duration": _is_duration,
    "byte": _is_base64,
    "uri": _is_uri,
    "email": _pattern(r"[^@\s]+@[^@\s]+"),
    "hostname": lambda value: len(value) <= 255 and _HOST.fullmatch(value) is not None,
    "ipv4": _is_address(4),
    "ipv6": _is_address(6),
    "cidr": _is_network,
    "mac": lambda value: _MAC.fullmatch(value) is not None,
    "uuid": _uuid(_HEX, _HEX),
    "uuid3": _uuid("3", _HEX),
    "uuid4": _uuid("4", "[89ab]"),
    "uuid5": _uuid("5", "[89ab]"),
    "hexcolor": _pattern("#?([0-9a-f]{3}|[0-9a-f]{6})"),
    "rgbcolor": _pattern(r"rgb\((\d{1,3},\s*){2}\d{1,3}\)"),
    "ssn": _pattern(r"\d{3}[- ]?\d{2}[- ]?\d{4}"),
    "bsonobjectid": _pattern("[0-9a-f]{24}"),
    "k8sshortname": lambda value: len(value) <= 63 and bool(re.fullmatch("[a-z0-9]([-a-z0-9]*[a-z0-9])?", value)),
    "k8slongname": lambda value: (
        len(value) <= 253
        and bool(re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", value))
    ),
}


def format_test(name: str) -> Callable[[str], bool] | None:
    """Return the test of a format, None where it is no constraint.

    >>> format_test("date-time")("2024-01-02T03:04:05Z"), format_test("nonsense")
    (True, None)
    """
    return _TESTS.get(name.replace("-", ""))
