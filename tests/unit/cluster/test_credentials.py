"""Credentials: read again when they change, requested again when they expire, and never shown."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import re
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from pyverno.cluster.access import Access, ExecPlugin
from pyverno.cluster.credentials import Credentials
from pyverno.errors import HostError

TOKEN: dict[str, Any] = {"token": "t"}
PASSWORD: dict[str, Any] = {"password": "pass"}


def _plugin(folder: Path, printed: str, **settings: object) -> ExecPlugin:
    """Return a plugin that counts its runs in a file and prints a text with the number."""
    script = folder / "plugin.py"
    script.write_text(
        "import os, pathlib\n"
        f"runs = pathlib.Path({str(folder / 'runs')!r})\n"
        "number = len(runs.read_text()) + 1 if runs.exists() else 1\n"
        "runs.write_text('x' * number)\n"
        f"pathlib.Path({str(folder / 'info')!r}).write_text(os.environ['KUBERNETES_EXEC_INFO'])\n"
        f"print({printed!r}.replace('NUMBER', str(number)))\n"
    )
    return ExecPlugin(sys.executable, (str(script),), **settings)  # type: ignore[arg-type]


def _credential(**status: object) -> str:
    return json.dumps({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status})


def _in(seconds: float) -> str:
    return (datetime.now(UTC) + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def _headers(credentials: Credentials, times: int = 2) -> list[str]:
    async def ask() -> list[str]:
        return [(await credentials.identity()).authorization for _ in range(times)]

    return asyncio.run(ask())


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({"token": "t-NUMBER"}, ["Bearer t-1", "Bearer t-1"]),
        ({"token": "t-NUMBER", "expirationTimestamp": _in(3600)}, ["Bearer t-1", "Bearer t-1"]),
        ({"token": "t-NUMBER", "expirationTimestamp": _in(-1)}, ["Bearer t-1", "Bearer t-2"]),
        ({"token": "t-NUMBER", "expirationTimestamp": _in(5)}, ["Bearer t-1", "Bearer t-2"]),
    ],
)
def test_a_plugin_is_run_again_when_its_credential_ends(
    tmp_path: Path, status: dict[str, str], expected: list[str]
) -> None:
    """It runs shortly before the expiry, so that no request arrives with an expired credential."""
    access = Access("https://one", exec_plugin=_plugin(tmp_path, _credential(**status)))
    assert expected == _headers(Credentials(access))


def test_a_plugin_receives_the_cluster_when_it_requests_that(tmp_path: Path) -> None:
    """It receives server and authority, and nothing of other users."""
    plugin = _plugin(tmp_path, _credential(**TOKEN), provides_cluster_info=True)
    _headers(Credentials(Access("https://one", ca=b"PEM", exec_plugin=plugin)))
    spec = json.loads((tmp_path / "info").read_text())["spec"]
    cluster = {"server": "https://one", "certificate-authority-data": base64.b64encode(b"PEM").decode()}
    assert {"interactive": False, "cluster": cluster} == spec


def test_after_a_refusal_a_plugin_runs_again(tmp_path: Path) -> None:
    """A static token would be refused again."""
    credentials = Credentials(
        Access("https://one", exec_plugin=_plugin(tmp_path, _credential(**{"token": "t-NUMBER"})))
    )
    assert ["Bearer t-1"] == _headers(credentials, 1)
    assert credentials.forget()
    assert ["Bearer t-2"] == _headers(credentials, 1)
    assert not Credentials(Access("https://one", **TOKEN)).forget()


@pytest.mark.parametrize(
    ("plugin", "said"),
    [
        (ExecPlugin("/nowhere/login", install_hint="get it"), "cannot be run: No such file or directory; get it"),
        (ExecPlugin(sys.executable, ("-c", "raise SystemExit(3)")), "ended with code 3"),
        (ExecPlugin(sys.executable, ("-c", "print('hunter2')")), "printed no ExecCredential"),
        (ExecPlugin(sys.executable, ("-c", "print('{\"status\": {}}')")), "printed no ExecCredential"),
        (ExecPlugin(sys.executable, ("-c", 'print(\'{"status": {"token": 7}}\')')), "printed no ExecCredential"),
    ],
)
def test_a_plugin_that_fails_is_named_and_its_output_is_not(plugin: ExecPlugin, said: str) -> None:
    """Its output may contain parts of a secret."""
    with pytest.raises(HostError) as caught:
        _headers(Credentials(Access("https://one", exec_plugin=plugin)))
    assert said in str(caught.value)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("content", [b"", b" \n", b"\xff\xfe", b"a\nb", "\u00e9".encode(), b"x" * 65_537])
def test_a_token_file_without_a_token_is_an_error_that_names_the_file(tmp_path: Path, content: bytes) -> None:
    """A header made of it would be refused later, or be no header at all."""
    path = tmp_path / "token"
    path.write_bytes(content)
    with pytest.raises(HostError, match=re.escape(f"the token file `{path}` holds no token")):
        _headers(Credentials(Access("https://one", token_file=path)))


def test_a_plugin_that_prints_without_end_is_stopped() -> None:
    """What it prints is kept up to the longest credential."""
    plugin = ExecPlugin(sys.executable, ("-c", "while True: print('x' * 1000)"))
    with pytest.raises(HostError, match="printed more than a credential"):
        _headers(Credentials(Access("https://one", exec_plugin=plugin)))


def test_a_plugin_ends_with_the_request_that_waits_for_it(tmp_path: Path) -> None:
    """A cancelled request leaves no process behind."""
    marker = tmp_path / "pid"
    script = f"import os, pathlib, time; pathlib.Path({str(marker)!r}).write_text(str(os.getpid())); time.sleep(300)"
    credentials = Credentials(Access("https://one", exec_plugin=ExecPlugin(sys.executable, ("-c", script))))

    async def cancelled() -> None:
        asked = asyncio.create_task(credentials.identity())
        while not (marker.exists() and marker.read_text()):
            await asyncio.sleep(0.01)
        asked.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asked

    asyncio.run(cancelled())
    with pytest.raises(ProcessLookupError):
        os.kill(int(marker.read_text()), 0)


def test_a_token_file_is_read_again(tmp_path: Path) -> None:
    """Kubernetes rotates it every hour; after a refusal it is read at once."""
    path = tmp_path / "token"
    path.write_text("one\n")
    credentials = Credentials(Access("https://one", token_file=path))
    assert ["Bearer one"] == _headers(credentials, 1)
    path.write_text("two")
    assert ["Bearer one"] == _headers(credentials, 1)
    assert credentials.forget()
    assert ["Bearer two"] == _headers(credentials, 1)
    path.unlink()
    credentials.forget()
    with pytest.raises(HostError, match="cannot be read: No such file"):
        _headers(credentials, 1)


def test_fixed_credentials_are_sent_as_they_are() -> None:
    """Cases are a token and a name with a password; the access never shows them."""
    access = Access("https://one", username="alice", **PASSWORD)
    assert [f"Basic {base64.b64encode(b'alice:pass').decode()}"] == _headers(Credentials(access), 1)
    assert ["Bearer t"] == _headers(Credentials(Access("https://one", **TOKEN)), 1)
    assert "pass'" not in repr(access)
