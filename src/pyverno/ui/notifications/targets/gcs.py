"""Google Cloud Storage: one object of JSON for each notice, with the token of a service account."""

from __future__ import annotations

import base64
import time
from typing import Final
from urllib.parse import quote, urlencode

import orjson
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from pyverno.cluster.serviceurl import ServiceUrl
from pyverno.errors import DocumentError, UsageError
from pyverno.kube.json import JSONObject, decode
from pyverno.lazyregex import regex
from pyverno.ui.notifications.delivery import Delivery, DeliveryError
from pyverno.ui.notifications.options import Options
from pyverno.ui.notifications.targets.s3 import object_key
from pyverno.ui.notifications.transport import Transport, read_tls, read_url
from pyverno.value import replace

__all__ = ["open_gcs"]

_BUCKET: Final = regex(r"[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]")
_TOKENS: Final = "https://oauth2.googleapis.com/token"
_STORAGE: Final = "https://storage.googleapis.com"
_SCOPE: Final = "https://www.googleapis.com/auth/devstorage.read_write"
_GRANT: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_LIFETIME: Final = 3600


async def open_gcs(transport: Transport, options: Options) -> GoogleStorage:
    """Return the target of these options; raises UsageError for an invalid bucket or credentials."""
    bucket = options.required("bucket")
    if _BUCKET.fullmatch(bucket) is None:
        raise UsageError("`bucket` is no name of one")
    url = read_url("endpoint", options.text("endpoint") or _STORAGE)
    path = f"{url.path.rstrip('/')}/upload/storage/v1/b/{bucket}/o"
    prefix = options.text("prefix").strip("/") or "policy-reporter"
    account = _Account(options.required("credentials"))
    return GoogleStorage(transport, replace(url, path=path), prefix, account, options)


class _Account:
    """A service account, which signs the statement that is exchanged for a token."""

    def __init__(self, text: str) -> None:
        """Read the JSON of its key; raises UsageError without any part of the key."""
        try:
            found = decode(text)
            assert isinstance(found, dict)  # noqa: S101 - caught below
            self.mail, key = str(found["client_email"]), str(found["private_key"])
            self.address = str(found.get("token_uri") or _TOKENS)
            loaded = serialization.load_pem_private_key(key.encode(), None)
        except (DocumentError, AssertionError, LookupError, ValueError, TypeError):
            raise UsageError("`credentials` must be the JSON of a key of a service account") from None
        if not isinstance(loaded, rsa.RSAPrivateKey):
            raise UsageError("`credentials` must hold an RSA key")
        self._key = loaded

    def assertion(self, now: int) -> str:
        """Return the signed statement that is exchanged for a token."""
        claims = {"iss": self.mail, "scope": _SCOPE, "aud": self.address, "iat": now, "exp": now + _LIFETIME}
        signed = f"{_encode({'alg': 'RS256', 'typ': 'JWT'})}.{_encode(claims)}"
        signature = self._key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        return f"{signed}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"


class GoogleStorage:
    """One bucket."""

    def __init__(self, transport: Transport, url: ServiceUrl, prefix: str, account: _Account, options: Options) -> None:
        """Take the address of uploads, the folder, and the writer."""
        self._transport = transport
        self._url = url
        self._prefix = prefix
        self._account = account
        self._options = options
        self._token = ("", 0)

    async def send(self, delivery: Delivery) -> None:
        """Write an object for each notice; a repeated delivery writes the same objects."""
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {await self._current_token()}"}
        tls = await read_tls(self._options)
        for notice in delivery.notices:
            name = quote(f"{self._prefix}/{object_key(notice)}", safe="")
            url = replace(self._url, query=f"uploadType=media&name={name}")
            await self._transport.send("POST", url, orjson.dumps(notice.to_json(delivery.custom)), headers, tls)

    async def _current_token(self) -> str:
        token, until = self._token
        now = int(time.time())
        if now < until:
            return token
        url = read_url("credentials", self._account.address)
        body = urlencode({"grant_type": _GRANT, "assertion": self._account.assertion(now)}).encode()
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        answer = (await self._transport.send("POST", url, body, headers, await read_tls(self._options))).json()
        found = answer.get("access_token") if isinstance(answer, dict) else None
        if not isinstance(found, str) or not found.isprintable():
            raise DeliveryError("no token is given for the service account")
        self._token = (found, now + _LIFETIME // 2)
        return found


def _encode(value: JSONObject) -> str:
    return base64.urlsafe_b64encode(orjson.dumps(value)).rstrip(b"=").decode()
