"""URLs of services: what is accepted, and refusal of ambiguous ones."""

from __future__ import annotations

import pytest

from pyverno.cluster.serviceurl import parse_service_url
from pyverno.errors import ValueSyntaxError


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("http://example.com", ("http", "example.com", 80, "/", "")),
        ("HTTPS://Example.COM:8443/A?b=C", ("https", "example.com", 8443, "/A", "b=C")),
        ("http://example.com.:8080/", ("http", "example.com.", 8080, "/", "")),
        ("http://example.com:/x", ("http", "example.com", 80, "/x", "")),
        ("http://example.com?q=1", ("http", "example.com", 80, "/", "q=1")),
        ("http://10.1.2.3/x", ("http", "10.1.2.3", 80, "/x", "")),
        ("http://[2001:DB8::1]:81/x", ("http", "2001:db8::1", 81, "/x", "")),
        ("http://my_service.team.svc/x", ("http", "my_service.team.svc", 80, "/x", "")),
        ("http://a/%7Euser/ä b?name=ä b", ("http", "a", 80, "/%7Euser/%C3%A4%20b", "name=%C3%A4%20b")),
        ("http://a/x//y/", ("http", "a", 80, "/x//y/", "")),
    ],
)
def test_a_url_is_read_in_parts(text: str, parts: tuple[object, ...]) -> None:
    """Scheme and host become lower case, ports have defaults, paths and queries stay as sent."""
    url = parse_service_url(text)
    assert parts == (url.scheme, url.host, url.port, url.path, url.query)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "only http and https"),
        ("example.com/x", "only http and https"),
        (" http://example.com", "only http and https"),
        ("file:///etc/passwd", "only http and https"),
        ("http:/example.com", "only http and https"),
        ("http://", "neither a host name nor an address"),
        ("http:///x", "neither a host name nor an address"),
        ("http://user:pass@example.com/", "credentials"),
        ("http://example.com#@evil.example/", "fragment"),
        ("http://example.com\\@evil.example/", "backslash"),
        ("http://exam\tple.com/", "control character"),
        ("http://example.com/\r\nHost: evil", "control character"),
        ("http://2852039166/", "neither a host name nor an address"),
        ("http://0x7f000001/", "neither a host name nor an address"),
        ("http://127.1/", "neither a host name nor an address"),
        ("http://0177.0.0.1/", "neither a host name nor an address"),
        ("http://127.0.0.1./", "neither a host name nor an address"),
        ("http://1.2.3.4.5/", "neither a host name nor an address"),
        ("http://exämple.com/", "neither a host name nor an address"),
        ("http://ｅxample.com/", "neither a host name nor an address"),
        ("http://ex%61mple.com/", "neither a host name nor an address"),
        ("http://a..b/", "neither a host name nor an address"),
        (f"http://{'a' * 64}/", "neither a host name nor an address"),
        ("http://[::1", "closing bracket"),
        ("http://[::1]x/", "closing bracket"),
        ("http://[fe80::1%25eth0]/", "neither a host name nor an address"),
        ("http://[127.0.0.1]/", "neither a host name nor an address"),
        ("http://example.com:0/", "not a port"),
        ("http://example.com:65536/", "not a port"),
        ("http://example.com:8o80/", "not a port"),
        ("http://example.com:80:80/", "not a port"),
        ("http://example.com:+80/", "not a port"),
        ("http://example.com:22/", "another protocol"),
        ("http://example.com/a/../b", "dot segment"),
        ("http://example.com/a/%2e%2E/b", "dot segment"),
        ("http://example.com/a/%252e%252e/b", "dot segment"),
        ("http://example.com/a%2f..%2fb", "dot segment"),
        ("http://example.com/" + "a" * 9000, "longer than"),
    ],
)
def test_what_two_readers_could_read_differently_is_refused(text: str, reason: str) -> None:
    """Credentials, odd addresses, odd names, dot segments and other protocols are errors with the reason."""
    with pytest.raises(ValueSyntaxError, match=reason):
        parse_service_url(text)


def test_an_origin_shows_neither_path_nor_query() -> None:
    """Errors show the origin of a call, so that secrets in paths and queries stay hidden."""
    assert "https://[2001:db8::1]:8443" == parse_service_url("https://[2001:db8::1]:8443/secret?token=1").origin
    assert "http://example.com" == parse_service_url("http://example.com:80/secret").origin
