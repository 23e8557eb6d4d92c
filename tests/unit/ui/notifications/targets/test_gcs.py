"""Objects in Google Cloud Storage, written with the token of a service account."""

from __future__ import annotations

import asyncio
import base64
import json
from pathlib import Path
from urllib.parse import parse_qs

import pytest
from aiohttp import web
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from pyverno.errors import UsageError
from pyverno.ui.notifications.delivery import DeliveryError
from tests.support.notifications import deliver, notice
from tests.support.services import Asked, Service

KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
PEM = KEY.private_bytes(
    serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
).decode()


def send(folder: Path, answer: dict[str, str]) -> list[Asked]:
    """Return the requests for two notices: that for a token, and two uploads."""

    async def play() -> list[Asked]:
        async with Service({"/token": lambda: web.json_response(answer)}) as service:
            account = {"client_email": "a@b.example", "private_key": PEM, "token_uri": service.url("/token")}
            (folder / "key.json").write_text(json.dumps(account))
            target = (
                f"targets: [{{type: gcs, bucket: logs, prefix: /p q/, endpoint: '{service.url('')}', "
                f"credentialsFile: '{folder}/key.json'}}]"
            )
            await deliver(target, [notice(name="a"), notice(name="b")])
            return service.asked

    return asyncio.run(play())


def decoded(part: str) -> dict[str, object]:
    """Return a part of a token."""
    found: dict[str, object] = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    return found


def test_each_notice_is_an_object_written_with_one_token(tmp_path: Path) -> None:
    """The statement for the token is signed by the account, and for this place alone."""
    token, first, second = send(tmp_path, {"access_token": "t0ken"})
    (assertion,) = parse_qs(token.body.decode())["assertion"]
    head, claims, signature = assertion.split(".")
    raw = base64.urlsafe_b64decode(signature + "=" * (-len(signature) % 4))
    KEY.public_key().verify(raw, f"{head}.{claims}".encode(), padding.PKCS1v15(), hashes.SHA256())
    assert "a@b.example" == decoded(claims)["iss"]
    assert first.path.startswith("/upload/storage/v1/b/logs/o?uploadType=media&name=p%20q%2F1970-01-01%2Fp-opened-")
    assert ["Bearer t0ken"] * 2 == [each.headers["Authorization"] for each in (first, second)]
    assert "a" == json.loads(first.body)["resource"]["name"]


def test_an_account_without_a_token_is_an_error(tmp_path: Path) -> None:
    """The delivery is repeated later."""
    with pytest.raises(DeliveryError, match="no token"):
        send(tmp_path, {"error": "x"})


@pytest.mark.parametrize("text", ["S3CRET", "{}", '{"client_email": "S3CRET", "private_key": "S3CRET"}'])
def test_credentials_of_another_form_are_not_shown(text: str) -> None:
    """Credentials are secrets, so the error does not quote them."""
    with pytest.raises(UsageError, match="must be the JSON") as caught:
        asyncio.run(
            deliver(json.dumps({"targets": [{"type": "gcs", "bucket": "logs", "credentials": text}]}), [notice()])
        )
    assert "S3CRET" not in str(caught.value)
