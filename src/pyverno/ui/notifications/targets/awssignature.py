"""Signature of requests to AWS and what speaks like it: Signature Version 4, for S3 with signed bodies."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from datetime import datetime
from typing import Final
from urllib.parse import quote

from pyverno.value import dataclass, field

__all__ = ["Credentials", "quote_key", "sign"]

_ALGORITHM: Final = "AWS4-HMAC-SHA256"
_UNRESERVED: Final = "-_.~"


@dataclass(frozen=True, slots=True)
class Credentials:
    """An access key; `token` belongs to keys for a time."""

    key: str
    secret: str = field(repr=False)
    token: str = field(default="", repr=False)


def sign(
    method: str,
    host: str,
    path: str,
    headers: Mapping[str, str],
    body: bytes,
    *,
    credentials: Credentials,
    region: str,
    at: datetime,
    service: str = "s3",
) -> dict[str, str]:
    """Return the headers of a request without query, those of its signature among them; `path` is quoted already."""
    digest = hashlib.sha256(body).hexdigest()
    moment = at.strftime("%Y%m%dT%H%M%SZ")
    found = {**{name.lower(): value for name, value in headers.items()}, "host": host}
    found |= {"x-amz-content-sha256": digest, "x-amz-date": moment}
    if credentials.token:
        found["x-amz-security-token"] = credentials.token
    names = sorted(found)
    signed = ";".join(names)
    canonical = "".join(f"{name}:{' '.join(found[name].split())}\n" for name in names)
    request = "\n".join((method, path, "", canonical, signed, digest))
    scope = f"{moment[:8]}/{region}/{service}/aws4_request"
    text = "\n".join((_ALGORITHM, moment, scope, hashlib.sha256(request.encode()).hexdigest()))
    key = f"AWS4{credentials.secret}".encode()
    for part in (moment[:8], region, service, "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.digest(key, text.encode(), "sha256").hex()
    del found["host"]
    found["authorization"] = (
        f"{_ALGORITHM} Credential={credentials.key}/{scope}, SignedHeaders={signed}, Signature={signature}"
    )
    return found


def quote_key(text: str) -> str:
    """Return the path of a key; its slashes stay.

    >>> quote_key("a b/c+d")
    'a%20b/c%2Bd'
    """
    return quote(text, safe=f"/{_UNRESERVED}")
