"""Sockets and TLS settings of connections to an API server."""

from __future__ import annotations

import socket
import ssl

import pytest

from pyverno.cluster.access import Access
from pyverno.cluster.sockets import open_socket, tls_context
from pyverno.errors import HostError


def test_a_socket_detects_a_dead_peer() -> None:
    """Keepalive probes an idle connection."""
    address = (socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", 1))
    with open_socket(address) as made:  # type: ignore[arg-type]
        assert made.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)


def test_a_certificate_that_cannot_be_read_is_an_error_of_the_server() -> None:
    """The error names the server, and no other exception reaches the caller."""
    with pytest.raises(HostError, match="https://api"):
        tls_context(Access("https://api", ca=b"no certificate"), b"", b"")


def test_verification_is_skipped_only_where_the_access_has_it() -> None:
    """By default names and certificates are verified."""
    assert tls_context(Access("https://api"), b"", b"").verify_mode is ssl.CERT_REQUIRED
    assert tls_context(Access("https://api", skips_verification=True), b"", b"").verify_mode is ssl.CERT_NONE
