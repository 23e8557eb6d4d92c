"""AWS Signature Version 4 of one request.

Written after the public description of the signing process; `amazon` is its only user.
"""

from __future__ import annotations

import hashlib
import hmac
from datetime import UTC, datetime
from urllib.parse import urlsplit

from pyverno.registry.providers.ambient import CloudRequest
from pyverno.value import dataclass, replace

__all__ = ["AwsKeys", "Signing", "sign"]


@dataclass(frozen=True, slots=True)
class AwsKeys:
    """An access key and its secret, with a session token for keys that end."""

    access: str
    secret: str
    session: str = ""

    def __repr__(self) -> str:
        return "AwsKeys()"


@dataclass(frozen=True, slots=True)
class Signing:
    """What is signed for: a service in a region, at a time in seconds since 1970."""

    service: str
    region: str
    now: int


def sign(request: CloudRequest, keys: AwsKeys, signing: Signing) -> CloudRequest:
    """Return a request with the headers that sign it; its URL must have no query."""
    parts = urlsplit(request.url)
    moment = datetime.fromtimestamp(signing.now, UTC)
    stamp, day = moment.strftime("%Y%m%dT%H%M%SZ"), moment.strftime("%Y%m%d")
    sent = {**request.headers, "X-Amz-Date": stamp, **({"X-Amz-Security-Token": keys.session} if keys.session else {})}
    canonical = {name.lower(): value.strip() for name, value in {**sent, "Host": parts.netloc}.items()}
    names = ";".join(sorted(canonical))
    lines = "".join(f"{name}:{canonical[name]}\n" for name in sorted(canonical))
    digest = hashlib.sha256(request.body).hexdigest()
    content = "\n".join((request.method, parts.path or "/", "", lines, names, digest))
    scope = f"{day}/{signing.region}/{signing.service}/aws4_request"
    text = "\n".join(("AWS4-HMAC-SHA256", stamp, scope, hashlib.sha256(content.encode()).hexdigest()))
    key = f"AWS4{keys.secret}".encode()
    for step in (day, signing.region, signing.service, "aws4_request"):
        key = hmac.digest(key, step.encode(), "sha256")
    signature = hmac.digest(key, text.encode(), "sha256").hex()
    credential = f"Credential={keys.access}/{scope}, SignedHeaders={names}, Signature={signature}"
    return replace(request, headers={**sent, "Authorization": f"AWS4-HMAC-SHA256 {credential}"})
