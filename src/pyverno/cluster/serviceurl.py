"""URLs of services that rules call: parsed strictly, so that every parser sees the same host.

Ambiguous URLs are rejected: credentials, backslashes, addresses in other than the usual
form, names beyond ASCII, fragments, dot segments. This module must never resolve a name.
"""

from __future__ import annotations

import ipaddress
import string
from typing import Final
from urllib.parse import quote, unquote

from pyverno.addresses import Address
from pyverno.errors import ValueSyntaxError
from pyverno.sinks.characters import one_line
from pyverno.value import dataclass

__all__ = ["ServiceUrl", "parse_service_url"]

_PORTS: Final = {"http": 80, "https": 443}
_OTHER_PROTOCOLS: Final = frozenset(
    (7, 9, 13, 19, 21, 22, 23, 25, 53, 69, 110, 111, 123, 135, 139, 143, 389, 445, 465, 514, 587, 636, 993, 995, 2049)
)
_NAME: Final = frozenset(string.ascii_lowercase + string.digits + "-_")
_LONGEST: Final = 8192
_PATH_SAFE: Final = "/-._~!$&'()*+,;=:@%"
_QUERY_SAFE: Final = _PATH_SAFE + "?[]"


@dataclass(frozen=True, slots=True)
class ServiceUrl:
    """An http or https URL in parts; `host` is a name in lower case (its last dot kept) or an address as text.

    `address` is set when the host is an address. `path` and `query` are as they go over the wire.
    """

    scheme: str
    host: str
    port: int
    path: str
    query: str = ""
    address: Address | None = None

    @property
    def name(self) -> str:
        """The host as lists of hosts name it: without the dot that makes it absolute."""
        return self.host.removesuffix(".")

    @property
    def origin(self) -> str:
        """Scheme, host and port. Errors show no more, because paths and queries may hold secrets."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}" + ("" if self.port == _PORTS[self.scheme] else f":{self.port}")


def parse_service_url(text: str) -> ServiceUrl:
    """Read a URL; raises ValueSyntaxError, whose text holds nothing of the URL but the part that is at fault.

    >>> parse_service_url("https://API.example.com/v1/a b?x=1")
    ServiceUrl(scheme='https', host='api.example.com', port=443, path='/v1/a%20b', query='x=1', address=None)
    >>> parse_service_url("http://2852039166/")
    Traceback (most recent call last):
    pyverno.errors.ValueSyntaxError: invalid URL: `2852039166` is neither a host name nor an address
    """
    if len(text) > _LONGEST:
        raise _refusal(f"it is longer than {_LONGEST} characters")
    if any(ord(character) < 0x20 or ord(character) == 0x7F for character in text) or "\\" in text:
        raise _refusal("it contains a control character or a backslash")
    scheme, separator, rest = text.partition("://")
    scheme = scheme.lower()
    if not separator or scheme not in _PORTS:
        raise _refusal("only http and https are called")
    if "#" in rest:
        raise _refusal("it contains a fragment")
    cut = min((position for position in (rest.find("/"), rest.find("?")) if position >= 0), default=len(rest))
    host, port, address = _authority(rest[:cut], scheme)
    path, _, query = rest[cut:].partition("?")
    _check_path(path)
    return ServiceUrl(
        scheme, host, port, _percent_encode(path, _PATH_SAFE) or "/", _percent_encode(query, _QUERY_SAFE), address
    )


def _authority(text: str, scheme: str) -> tuple[str, int, Address | None]:
    if "@" in text:
        raise _refusal("it contains credentials")
    if text.startswith("["):
        inside, bracket, after = text[1:].partition("]")
        if not bracket or (after and not after.startswith(":")):
            raise _refusal("its host has no closing bracket")
        port = _port(after[1:], scheme) if after else _PORTS[scheme]
        address: Address | None = _ipv6(inside)
        return str(address), port, address
    host, colon, digits = text.partition(":")
    host = host.lower()
    port = _port(digits, scheme) if colon else _PORTS[scheme]
    address = _ipv4(host)
    if address is None and not _is_name(host):
        raise _refusal(f"`{_escape(host)}` is neither a host name nor an address")
    return host, port, address


def _port(digits: str, scheme: str) -> int:
    if not digits:  # `host:` is allowed, and means nothing
        return _PORTS[scheme]
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= 5 and 0 < int(digits) < 65536):
        raise _refusal(f"`{_escape(digits)}` is not a port")
    port = int(digits)
    if port in _OTHER_PROTOCOLS:
        raise _refusal(f"port {port} is that of another protocol")
    return port


def _ipv6(text: str) -> Address:
    try:
        if "%" not in text:
            return ipaddress.IPv6Address(text)
    except ValueError:
        pass
    raise _refusal(f"`{_escape(text)}` is neither a host name nor an address")


def _ipv4(text: str) -> Address | None:
    try:
        return ipaddress.IPv4Address(text)  # four decimal numbers and nothing else
    except ValueError:
        return None


def _is_name(text: str) -> bool:
    labels = text.removesuffix(".").split(".")
    if len(text) > 253 or not all(0 < len(label) <= 63 and _NAME.issuperset(label) for label in labels):
        return False
    # a last label that is a number makes the C library read an address (`2852039166`, `0x7f.1`, `127.1`)
    last = labels[-1]
    return not (last.isdecimal() or last.startswith("0x"))


def _check_path(path: str) -> None:
    """Refuse dot segments in every escaped form: a server may resolve them to a path outside the allowed prefix."""
    before = ""
    after = path
    while before != after:
        before, after = after, unquote(after)
    if any(segment in (".", "..") for segment in after.replace("\\", "/").split("/")):
        raise _refusal("its path contains a dot segment")


def _percent_encode(text: str, safe: str) -> str:
    return quote(text, safe=safe, errors="replace")


def _escape(text: str) -> str:
    return one_line(text[:80])


def _refusal(reason: str) -> ValueSyntaxError:
    return ValueSyntaxError(f"invalid URL: {reason}")
