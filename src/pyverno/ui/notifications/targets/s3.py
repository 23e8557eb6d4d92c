"""S3 and compatible storage: one JSON object for each notice.

The key holds the day, the policy and the id of the notice: a repeated delivery writes the same objects again.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Final
from urllib.parse import quote

import orjson

from pyverno.errors import UsageError
from pyverno.registry.awssignature import AwsKeys, Signing, sign
from pyverno.ui.notifications.delivery import Delivery
from pyverno.ui.notifications.notice import Notice
from pyverno.ui.notifications.options import Options
from pyverno.ui.notifications.transport import Transport, read_tls, read_url
from pyverno.value import replace

__all__ = ["object_key", "open_s3"]

_BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_REGION: Final = re.compile(r"[a-z0-9-]{1,64}")
_NOT_KEY: Final = re.compile(r"[^a-zA-Z0-9._-]")


async def open_s3(transport: Transport, options: Options) -> S3:
    """Return the target of these options; raises UsageError for a bucket or region that cannot exist."""
    bucket, region = options.required("bucket"), options.text("region") or "us-east-1"
    if _BUCKET.fullmatch(bucket) is None or _REGION.fullmatch(region) is None:
        raise UsageError("`bucket` or `region` is no name of one")
    url = read_url("endpoint", options.text("endpoint") or f"https://s3.{region}.amazonaws.com")
    base = url.path.rstrip("/")
    if options.flag("pathStyle"):
        url = replace(url, path=f"{base}/{bucket}")
    elif url.address is not None:
        raise UsageError("an `endpoint` that is an address needs `pathStyle: true`")
    else:
        url = replace(url, host=f"{bucket}.{url.host}", path=base)
    keys = AwsKeys(options.required("accessKeyId"), options.required("secretAccessKey"), options.text("sessionToken"))
    headers = {"Content-Type": "application/json"}
    encryption = options.text("serverSideEncryption") or ("aws:kms" if options.text("kmsKeyId") else "")
    if encryption:
        headers["x-amz-server-side-encryption"] = encryption
    if options.text("kmsKeyId"):
        headers["x-amz-server-side-encryption-aws-kms-key-id"] = options.text("kmsKeyId")
    if options.flag("bucketKeyEnabled"):
        headers["x-amz-server-side-encryption-bucket-key-enabled"] = "true"
    tls = await read_tls(options)
    prefix = options.text("prefix").strip("/") or "policy-reporter"

    async def put(path: str, body: bytes) -> None:
        target = replace(url, path=path)
        sent = {**headers, "x-amz-content-sha256": hashlib.sha256(body).hexdigest()}
        signing = Signing("s3", region, int(time.time()))
        signed = sign("PUT", f"{target.origin}{path}", sent, body, keys=keys, signing=signing)
        await transport.send("PUT", target, body, signed, tls)

    return S3(put, f"{url.path}/{quote(prefix, safe='/-_.~')}")


class S3:
    """One bucket."""

    def __init__(self, put: Callable[[str, bytes], Awaitable[None]], folder: str) -> None:
        """Take what writes an object to a path, and the path of the prefix."""
        self._put = put
        self._folder = folder

    async def send(self, delivery: Delivery) -> None:
        """Write an object for each notice."""
        for notice in delivery.notices:
            await self._put(f"{self._folder}/{object_key(notice)}", orjson.dumps(notice.to_json(delivery.custom)))


def object_key(notice: Notice) -> str:
    """Return the name of the object of a notice: its day, its policy, and its id."""
    day = datetime.fromtimestamp(notice.at, UTC).strftime("%Y-%m-%d")
    return f"{day}/{_NOT_KEY.sub('_', notice.policy)[:100] or '_'}-{notice.event}-{notice.id}.json"
