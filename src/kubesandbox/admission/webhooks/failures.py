"""Failures of calls to webhooks, with the texts of Go's client, which users search for."""

from __future__ import annotations

import asyncio
import errno
import re
import ssl
from collections.abc import Mapping
from typing import TYPE_CHECKING

from kubesandbox.parsing.requests import go_quote
from pyverno.errors import DocumentError
from pyverno.kube.json import JSON, decode

if TYPE_CHECKING:
    import aiohttp

__all__ = ["certificate_text", "connection_text", "refusal_text"]

_TLS = "tls: failed to verify certificate: "
_UNKNOWN = "x509: certificate signed by unknown authority"
_EXPIRED = "x509: certificate has expired or is not yet valid"
_VERIFY_TEXTS: Mapping[int, str] = {
    **dict.fromkeys((2, 18, 19, 20, 21), _UNKNOWN),
    **dict.fromkeys((9, 10), _EXPIRED),
    26: "x509: certificate specifies an incompatible key usage",
}
"""OpenSSL's verification codes → Go's texts."""

_OTHER_NAME = (62, 64)
_PLAIN_HTTP = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG")
_CODE_TEXTS: Mapping[int, str] = {
    400: "the server rejected our request for an unknown reason",
    401: "the server has asked for the client to provide credentials",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    409: "the server reported a conflict",
    422: "the server rejected our request due to an error in our request",
    429: "the server has received too many requests and has asked us to try again later",
    503: "the server is currently unable to handle the request",
    504: "the server was unable to return a response in the time allotted, but may still be processing the request",
}
_SAID_BY_SERVER = (403, 406, 415)
_ADDRESS = re.compile(r"Connect call failed \('([^']+)', (\d+)")


def refusal_text(code: int, content_type: str, data: bytes) -> str:
    """Return the error text for a response that is no success.

    >>> refusal_text(500, "text/plain", b"oops")
    'an error on the server ("oops") has prevented the request from succeeding'
    """
    said = data.decode(errors="replace").strip() if content_type.startswith("text/") else "unknown"
    try:
        body: JSON = decode(data)
    except DocumentError:
        body = None
    if isinstance(body, dict) and body.get("kind") == "Status" and body.get("message"):
        return str(body["message"])
    if code in _SAID_BY_SERVER:
        return said
    if code in _CODE_TEXTS:
        return _CODE_TEXTS[code]
    if code >= 500:
        return f"an error on the server ({go_quote(said)}) has prevented the request from succeeding"
    return f"the server responded with the status code {code} but did not return more information"


def connection_text(error: Exception, host: str) -> str:
    """Return the error text for a connection that could not be opened or was lost."""
    import aiohttp

    match error:
        case aiohttp.ClientConnectorDNSError():
            return f"dial tcp: lookup {host}: no such host"
        case aiohttp.ClientConnectorSSLError():
            return _handshake_text(error.os_error)
        case aiohttp.ClientConnectorError():
            return _dial_text(error)
        case aiohttp.ServerDisconnectedError() | aiohttp.ClientPayloadError():
            return "EOF"
        case OSError() if error.errno == errno.ECONNRESET:
            return "read: connection reset by peer"
        case _:
            return str(error) or "EOF"


def _dial_text(error: aiohttp.ClientConnectorError) -> str:
    cause = error.os_error
    if isinstance(cause, ConnectionResetError):
        return "EOF"
    found = _ADDRESS.search(str(cause))
    host, port = (found[1], found[2]) if found else (error.host, str(error.port))
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    if isinstance(cause, ConnectionRefusedError) or cause.errno == errno.ECONNREFUSED or found:
        return f"dial tcp {address}: connect: connection refused"
    return f"dial tcp {address}: connect: {(cause.strerror or str(cause)).lower()}"


def _handshake_text(error: OSError) -> str:
    reason = getattr(error, "reason", None) or ""
    if reason in _PLAIN_HTTP:
        return "http: server gave HTTP response to HTTPS client"
    alert = re.search(r"ALERT_([A-Z_]+)$", reason)
    return f"remote error: tls: {alert[1].lower().replace('_', ' ')}" if alert else f"tls: {reason.lower() or error}"


async def certificate_text(error: aiohttp.ClientConnectorCertificateError, name: str) -> str:
    """Return the error text for a certificate that is not trusted; `name` is the one it should have."""
    cause = error.certificate_error
    code = cause.verify_code if isinstance(cause, ssl.SSLCertVerificationError) else 0
    if code not in _OTHER_NAME:
        return _TLS + _VERIFY_TEXTS.get(code, f"x509: {cause}")
    names = await _certified_names(error.host, error.port or 443, name)
    if not names:
        return f"{_TLS}x509: certificate is not valid for any names, but wanted to match {name}"
    return f"{_TLS}x509: certificate is valid for {', '.join(names)}, not {name}"


async def _certified_names(host: str, port: int, name: str) -> list[str]:
    """Read the names in a certificate that is not trusted."""
    from cryptography import x509

    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # the connection sends nothing and only reads the certificate
    try:
        _, writer = await asyncio.open_connection(host, port, ssl=context, server_hostname=name)
    except OSError:
        return []
    try:
        data = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        certificate = x509.load_der_x509_certificate(data)
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, x509.ExtensionNotFound):
        return []
    finally:
        writer.close()
    return [*found.get_values_for_type(x509.DNSName), *map(str, found.get_values_for_type(x509.IPAddress))]
