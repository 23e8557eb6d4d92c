"""Kubernetes' library of URLs."""

from __future__ import annotations

from typing import ClassVar, Final

from pyverno.errors import ValueSyntaxError
from pyverno.lang.cel.declarations import Library, function
from pyverno.lang.cel.faults import OperandError
from pyverno.lang.cel.gourl import GoUrl, parse_request_uri, parse_url
from pyverno.lang.cel.libraries.costs import by_size
from pyverno.lang.cel.types import opaque
from pyverno.lang.cel.values import Value
from pyverno.lang.cel.work import instant, walking
from pyverno.value import dataclass

__all__ = ["URL", "URLS"]


@dataclass(frozen=True, slots=True)
class URL:
    """A parsed URL; equal to another when their texts are."""

    cel_type: ClassVar[str] = "kubernetes.URL"
    parsed: GoUrl


def _url_work(operands: tuple[Value, ...]) -> int:
    return len(operands[0].parsed.text)


@function("url", "(string) -> kubernetes.URL", cost=by_size(), work=walking(steps=2))
def url(text: str) -> URL:
    """The URL that a text names: an absolute URI or an absolute path.

    CEL: url('https://x:8080/a?b=c').getHost() ⇒ 'x:8080'
    """
    try:
        parse_request_uri(text)
        return URL(parse_url(text))
    except ValueSyntaxError as error:
        problem = "URL parse error during conversion from string"
        raise OperandError(problem, f"{problem}: {error.message}") from None


@function("isURL", "(string) -> bool", work=walking())
def is_url(text: str) -> bool:
    """Whether a text names a URL.

    CEL: isURL('x') ⇒ false
    """
    try:
        parse_request_uri(text)
    except ValueSyntaxError:
        return False
    return True


@function("getScheme", "kubernetes.URL.() -> string", work=instant)
def get_scheme(value: URL) -> str:
    """The scheme in lower case.

    CEL: url('HTTPS://x/').getScheme() ⇒ 'https'
    """
    return value.parsed.scheme


@function("getHost", "kubernetes.URL.() -> string", work=instant)
def get_host(value: URL) -> str:
    """The host with its port.

    CEL: url('https://[::1]:80/').getHost() ⇒ '[::1]:80'
    """
    return value.parsed.host


@function("getHostname", "kubernetes.URL.() -> string", work=instant)
def get_hostname(value: URL) -> str:
    """The host without port and brackets.

    CEL: url('https://[::1]:80/').getHostname() ⇒ '::1'
    """
    return value.parsed.hostname


@function("getPort", "kubernetes.URL.() -> string", work=instant)
def get_port(value: URL) -> str:
    """The port, empty when there is none.

    CEL: url('https://x:8080/').getPort() ⇒ '8080'
    """
    return value.parsed.port


@function("getEscapedPath", "kubernetes.URL.() -> string", work=_url_work)
def get_escaped_path(value: URL) -> str:
    """The path as it goes over the wire.

    CEL: url('https://x/a b').getEscapedPath() ⇒ '/a%20b'
    """
    return value.parsed.escaped_path


@function("getQuery", "kubernetes.URL.() -> map(string, list(string))", work=_url_work)
def get_query(value: URL) -> dict[str, list[str]]:
    """The query parameters, each with its values.

    CEL: url('https://x/?b=c&b=d').getQuery() ⇒ {'b': ['c', 'd']}
    """
    return value.parsed.query


URLS: Final = Library(
    "kubernetes.urls",
    (url, is_url, get_scheme, get_host, get_hostname, get_port, get_escaped_path, get_query),
    types=(opaque("kubernetes.URL"),),
    introduced="1.0",
    doc="URLs.",
)
