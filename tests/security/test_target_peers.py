"""No answer of a notification target is more than an error: every kind against every value of an answer."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from pyverno.ui.notifications import targets, transport
from pyverno.ui.notifications.delivery import DeliveryError
from pyverno.ui.notifications.targets.catalog import KINDS
from tests.support.hostilepeers import FAULTS, HARMLESS, hostile_peer
from tests.support.notifications import HOSTILE, deliver, notice

_CHAT = "webhook: 'URL/hook?k=s3cret'"
_AWS = "endpoint: 'URL', region: r, accessKeyId: i, secretAccessKey: s3cret"
_OPTIONS = {
    **dict.fromkeys(("slack", "teams", "discord", "googleChat", "webhook"), _CHAT),
    "loki": "host: 'URL', username: u, password: s3cret",
    "elasticsearch": "host: 'URL', apiKey: s3cret",
    "alertManager": "host: 'URL', username: u, password: s3cret",
    "s3": f"bucket: bucket, pathStyle: true, {_AWS}",
    "jira": "host: 'URL', apiToken: s3cret, username: u, projectKey: P",
    "telegram": "host: 'URL', token: '1:s3cret', chatId: '-7'",
    "splunk": "host: 'URL', token: s3cret",
    "gcs": "bucket: bucket, endpoint: 'URL', credentialsFile: 'KEY'",
    "kinesis": f"streamName: s, {_AWS}",
    "securityHub": f"accountId: '123456789012', {_AWS}",
}
_ELSEWHERE = {"email": "test_mail_peers.py"}


def _keys() -> list[str]:
    """The keys of answers that targets look for."""
    folder = Path(targets.__file__).parent
    return sorted({key for path in folder.glob("*.py") for key in re.findall(r'"([A-Za-z_]+)"', path.read_text())})


def _whole(value: Any) -> Any:
    body = json.dumps(value).encode()
    return lambda _: iter([b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body])


_VALUES = {
    **{name: FAULTS[name] for name in HARMLESS},
    **{
        f"{json.dumps(value)} everywhere": _whole(dict.fromkeys(_keys(), value))
        for value in (None, True, 5, -1, 1e300, "", "a\r\nb", [], [1], [[]], {}, [{}], [{"a": {}}])
    },
    "a number": _whole(5),
    "a text": _whole("a"),
}


def test_every_kind_of_target_is_tested() -> None:
    """A new kind needs options here."""
    assert {*KINDS} == {*_OPTIONS, *_ELSEWHERE}


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of a service account of Google; its address is that of the peer."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
    path = tmp_path_factory.mktemp("gcs") / "key.json"
    path.write_text(json.dumps({"client_email": "a@b.example", "private_key": pem, "token_uri": "URL/token"}))
    return path


@pytest.mark.parametrize("kind", _OPTIONS)
def test_no_value_of_an_answer_is_more_than_an_error(
    kind: str, account: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bug would drop the notices: what a target cannot read is an error of the delivery, without a secret."""
    monkeypatch.setattr(transport, "_SECONDS", 30.0)

    async def play(value: str) -> str:
        async with hostile_peer(_VALUES[value]) as peer:
            (tmp_path / "key.json").write_text(account.read_text().replace("URL", peer.url))
            options = _OPTIONS[kind].replace("URL", peer.url).replace("KEY", str(tmp_path / "key.json"))
            try:
                async with asyncio.timeout(60):
                    await deliver(f"targets: [{{type: {kind}, {options}}}]", [notice(message=HOSTILE)])
            except DeliveryError as error:
                return error.message
            assert peer.connections
            return ""

    for value in _VALUES:
        assert "s3cret" not in asyncio.run(play(value)), value
