"""AWS Signature Version 4 of one request: for Amazon's registries and keys, and for storage with the interface of S3.

Written after the public description of the signing process.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from datetime import UTC, datetime
from urllib.parse import urlsplit

from pyverno.value import dataclass, field

__all__ = ["AwsKeys", "Signing", "sign"]


@dataclass(frozen=True, slots=True)
class AwsKeys:
    """An access key and its secret, with a session token for temporary keys."""

    access: str = field(repr=False)
    secret: str = field(repr=False)
    session: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Signing:
    """The scope of a signature: a service in a region, at a time in seconds since 1970."""

    service: str
    region: str
    now: int


def sign(
    method: str, url: str, headers: Mapping[str, str], body: bytes, *, keys: AwsKeys, signing: Signing
) -> dict[str, str]:
    """Return the headers of a request with those of its signature; the URL has a quoted path and no query.

    All given headers are signed, and `Host` as the client sends it.
    """
    parts = urlsplit(url)
    moment = datetime.fromtimestamp(signing.now, UTC)
    stamp, day = moment.strftime("%Y%m%dT%H%M%SZ"), moment.strftime("%Y%m%d")
    sent = {**headers, "X-Amz-Date": stamp, **({"X-Amz-Security-Token": keys.session} if keys.session else {})}
    canonical = {name.lower(): " ".join(value.split()) for name, value in {**sent, "Host": parts.netloc}.items()}
    names = ";".join(sorted(canonical))
    lines = "".join(f"{name}:{canonical[name]}\n" for name in sorted(canonical))
    digest = hashlib.sha256(body).hexdigest()
    content = "\n".join((method, parts.path or "/", "", lines, names, digest))
    scope = f"{day}/{signing.region}/{signing.service}/aws4_request"
    text = "\n".join(("AWS4-HMAC-SHA256", stamp, scope, hashlib.sha256(content.encode()).hexdigest()))
    key = f"AWS4{keys.secret}".encode()
    for step in (day, signing.region, signing.service, "aws4_request"):
        key = hmac.digest(key, step.encode(), "sha256")
    signature = hmac.digest(key, text.encode(), "sha256").hex()
    credential = f"Credential={keys.access}/{scope}, SignedHeaders={names}, Signature={signature}"
    return {**sent, "Authorization": f"AWS4-HMAC-SHA256 {credential}"}
