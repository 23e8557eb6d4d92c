"""External hosts and invalid URLs."""

import pytest

from pyverno.errors import EvaluationError, HostError
from pyverno.lang.jmespath import compile_expression
from pyverno.lang.runtime import Runtime
from tests.unit.lang.jmespath.hosts import FixedHost

NAMES = {"in.example": ("8.8.8.8", "10.0.0.1"), "out.example": ("8.8.8.8",)}


def is_external(url: str) -> bool:
    expression = compile_expression("is_external_url(@)")
    return expression.evaluate(url, Runtime(host=FixedHost(names=NAMES)))


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://localhost", False),
        ("http://127.0.0.1:80/x", False),
        ("http://172.16.1.1", False),
        ("https://[::1]/", False),
        ("https://[fc00::1]:443/", False),
        ("https://[::ffff:10.0.0.1]/", False),
        ("https://[2001:db8::1]", True),
        ("https://8.8.8.8/x?y#z", True),
        ("https://user:word@8.8.8.8", True),
        ("//8.8.8.8", True),
        ("https://in.example", False),
        ("https://out.example:8443/path", True),
    ],
)
def test_loopback_and_private_addresses_are_not_external(url, expected):
    """One internal address of a name is enough."""
    assert expected == is_external(url)


@pytest.mark.parametrize("url", ["", "example", "a:b:c/d", ":x", "https://h:port", "https://[::1", "https://h\x00"])
def test_what_has_no_host_is_an_error(url):
    """A text without a host gives an error, neither true nor false."""
    with pytest.raises(EvaluationError):
        is_external(url)


def test_a_name_without_address_is_an_error():
    """The error is one of the world, and does not name the host: it may come out of a value."""
    with pytest.raises(HostError, match=r"the host of argument #1 has no address"):
        is_external("https://no.example")
