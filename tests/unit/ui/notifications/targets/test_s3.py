"""Objects are written with a signature that a server of S3 accepts."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import re

import pytest

from pyverno.errors import UsageError
from tests.support.notifications import deliver, notice
from tests.support.services import Asked, Service

KEY, SECRET = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"


def signature(asked: Asked, secret: str) -> str:
    """Return the signature that a request must have, computed from the received data by the specification."""
    headers = {name.lower(): value for name, value in asked.headers.items()}
    found = re.fullmatch(
        r"AWS4-HMAC-SHA256 Credential=[^/]+/(\d{8})/([^/]+)/s3/aws4_request, SignedHeaders=([^,]+), Signature=\w+",
        headers["authorization"],
    )
    assert found is not None
    day, region, names = found.groups()
    assert hashlib.sha256(asked.body).hexdigest() == headers["x-amz-content-sha256"]
    lines = "".join(f"{name}:{headers[name].strip()}\n" for name in names.split(";"))
    request = f"{asked.method}\n{asked.path}\n\n{lines}\n{names}\n{headers['x-amz-content-sha256']}"
    scope = f"{day}/{region}/s3/aws4_request"
    text = f"AWS4-HMAC-SHA256\n{headers['x-amz-date']}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
    key = b"AWS4" + secret.encode()
    for part in (day, region, "s3", "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def test_each_notice_is_an_object() -> None:
    """The key has the day, the policy without what is no name, and the id; all headers that matter are signed."""
    one = notice(policy="../a b?<é>")

    async def play() -> Asked:
        async with Service() as service:
            target = (
                f"target: {{s3: {{endpoint: '{service.url('')}', bucket: logs, pathStyle: true, prefix: /p q/, "
                f"accessKeyId: {KEY}, secretAccessKey: '{SECRET}', sessionToken: t, kmsKeyId: k}}}}"
            )
            await deliver(target, [one])
            (asked,) = service.asked
            return asked

    asked = asyncio.run(play())
    assert f"/logs/p%20q/1970-01-01/.._a_b____-opened-{one.id}.json" == asked.path
    assert signature(asked, SECRET) == asked.headers["Authorization"].rpartition("=")[2]
    assert signature(asked, "other") != asked.headers["Authorization"].rpartition("=")[2]
    assert "x-amz-security-token;x-amz-server-side-encryption" in asked.headers["Authorization"]
    assert one.id == json.loads(asked.body)["id"]


@pytest.mark.parametrize("bucket", ["a/b", "A", "..", "x@evil.example", "a b"])
def test_a_bucket_is_nothing_but_a_name(bucket: str) -> None:
    """The name becomes a part of the address, so other characters are refused."""
    target = f"target: {{s3: {{bucket: '{bucket}', accessKeyId: a, secretAccessKey: b}}}}"
    with pytest.raises(UsageError, match="is no name of one"):
        asyncio.run(deliver(target, [notice()]))
