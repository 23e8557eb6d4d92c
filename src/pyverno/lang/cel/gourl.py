"""URLs exactly as Go's net/url reads them: what is refused, what the host is, how a path is escaped.

Python's urllib takes other texts for URLs and finds other hosts in them. This module must never resolve a name or
normalise a path.
"""

from __future__ import annotations

import string
from typing import Final

from pyverno.errors import ValueSyntaxError
from pyverno.value import dataclass

__all__ = ["GoUrl", "parse_request_uri", "parse_url"]

_UNRESERVED: Final = frozenset(string.ascii_letters + string.digits + "-_.~")
_USERINFO: Final = _UNRESERVED | frozenset("!$&'()*+,;=%@:")
_HOST_ALLOWED: Final = _UNRESERVED | frozenset("!$&'()*+,;=:[]<>\"")
_PATH_ALLOWED: Final = _UNRESERVED | frozenset("$&+,/:;=@")
_HEX: Final = frozenset(string.hexdigits)


@dataclass(frozen=True, slots=True)
class GoUrl:
    """A parsed URL; `path` is unescaped, `raw_path` as written."""

    scheme: str = ""
    opaque: str = ""
    user: str = ""
    host: str = ""
    path: str = ""
    raw_path: str = ""
    raw_query: str = ""
    fragment: str = ""
    text: str = ""

    @property
    def hostname(self) -> str:
        """The host without port and brackets."""
        host = self.host
        if host.startswith("["):
            return host[1 : host.find("]")] if "]" in host else host
        return host.partition(":")[0]

    @property
    def port(self) -> str:
        """The port as written, or an empty text."""
        after = self.host[self.host.rfind("]") + 1 :]
        return after.rpartition(":")[2] if ":" in after else ""

    @property
    def escaped_path(self) -> str:
        """The path as it goes over the wire."""
        if self.raw_path and _valid_path(self.raw_path):
            return self.raw_path
        return "*" if self.path == "*" else _escape(self.path)

    @property
    def query(self) -> dict[str, list[str]]:
        """The parameters by name, in order; malformed ones are left out as in Go."""
        found: dict[str, list[str]] = {}
        for pair in self.raw_query.split("&"):
            if not pair or ";" in pair:
                continue
            name, _, value = pair.partition("=")
            try:
                key, decoded = _unescape(name, plus=True), _unescape(value, plus=True)
            except ValueSyntaxError:
                continue
            found.setdefault(key, []).append(decoded)
        return found


def parse_request_uri(text: str) -> GoUrl:
    """Return an absolute URI or absolute path; a fragment is not split off. Raises ValueSyntaxError.

    >>> parse_request_uri("https://example.com:8080/a%20b?x=1").host
    'example.com:8080'
    """
    try:
        return _parse(text, request=True)
    except ValueSyntaxError as error:
        raise ValueSyntaxError(f'parse "{text}": {error.message}') from None


def parse_url(text: str) -> GoUrl:
    """Return any URL reference, its fragment split off. Raises ValueSyntaxError."""
    head, _, fragment = text.partition("#")
    try:
        parsed = _parse(head, request=False)
        decoded = _unescape(fragment)
    except ValueSyntaxError as error:
        raise ValueSyntaxError(f'parse "{text}": {error.message}') from None
    return GoUrl(
        parsed.scheme, parsed.opaque, parsed.user, parsed.host, parsed.path, parsed.raw_path, parsed.raw_query,
        decoded, text,
    )  # fmt: skip


def _parse(text: str, *, request: bool) -> GoUrl:
    if any(ord(char) < 0x20 or char == "\x7f" for char in text):
        raise ValueSyntaxError("net/url: invalid control character in URL")
    if not text and request:
        raise ValueSyntaxError("empty url")
    if text == "*":
        return GoUrl(path="*", text=text)
    scheme, rest = _scheme(text)
    rest, _, query = rest.partition("?")
    if not rest.startswith("/"):
        if scheme:
            return GoUrl(scheme, opaque=rest, raw_query=query, text=text)
        if request:
            raise ValueSyntaxError("invalid URI for request")
        if ":" in rest.partition("/")[0]:
            raise ValueSyntaxError("first path segment in URL cannot contain colon")
    user = host = ""
    if rest.startswith("//") and (scheme or (not request and not rest.startswith("///"))):
        authority, slash, tail = rest[2:].partition("/")
        rest = slash + tail
        user, host = _authority(authority)
    path = _unescape(rest)
    raw = "" if rest == _escape(path) else rest
    return GoUrl(scheme, "", user, host, path, raw, query, "", text)


def _scheme(text: str) -> tuple[str, str]:
    for position, char in enumerate(text):
        if char in string.ascii_letters:
            continue
        if char in string.digits + "+-.":
            if position == 0:
                return "", text
        elif char == ":":
            if position == 0:
                raise ValueSyntaxError("missing protocol scheme")
            return text[:position].lower(), text[position + 1 :]
        else:
            return "", text
    return "", text


def _authority(text: str) -> tuple[str, str]:
    user, at, host = text.rpartition("@")
    if at and not all(char in _USERINFO for char in user):
        raise ValueSyntaxError("net/url: invalid userinfo")
    if at:
        _unescape(user)
    return user, _host(host)


def _host(text: str) -> str:
    bracket = text.rfind("]")
    if text.startswith("["):
        if bracket < 0:
            raise ValueSyntaxError("missing ']' in host")
        port = text[bracket + 1 :]
    else:
        colon = text.rfind(":")
        port = text[colon:] if colon >= 0 else ""
    if port and not (port[0] == ":" and all(char in string.digits for char in port[1:])):
        raise ValueSyntaxError(f'invalid port "{port}" after host')
    for char in text:
        if char != "%" and ord(char) < 0x80 and char not in _HOST_ALLOWED:
            raise ValueSyntaxError(f'invalid character "{char}" in host name')
    if "%" not in text:
        return text
    for position, char in enumerate(text):
        code = text[position : position + 3]
        if char == "%" and (len(code) < 3 or (code != "%25" and code[1] in "01234567")):
            raise ValueSyntaxError(f'invalid URL escape "{code}"')
    return _unescape(text)


def _unescape(text: str, *, plus: bool = False) -> str:
    if "%" not in text:
        return text.replace("+", " ") if plus else text
    data = bytearray()
    position = 0
    while position < len(text):
        char = text[position]
        if char == "%":
            code = text[position : position + 3]
            if len(code) < 3 or code[1] not in _HEX or code[2] not in _HEX:
                raise ValueSyntaxError(f'invalid URL escape "{code}"')
            data.append(int(code[1:], 16))
            position += 3
            continue
        data += b" " if plus and char == "+" else char.encode("utf-8", "surrogatepass")
        position += 1
    return data.decode("utf-8", "replace")


def _escape(path: str) -> str:
    return "".join(
        char if char in _PATH_ALLOWED else "".join(f"%{byte:02X}" for byte in char.encode("utf-8", "surrogatepass"))
        for char in path
    )


def _valid_path(path: str) -> bool:
    return all(char in _PATH_ALLOWED or char in "!'()*%[]" for char in path)
