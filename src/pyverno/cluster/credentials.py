"""The credential of each request: a fixed one, a file that is read again, or the output of a plugin.

This module must never keep a credential beyond its expiry, nor show one in an error.
"""

from __future__ import annotations

import asyncio
import base64
import errno
import os
import time
from datetime import datetime
from pathlib import Path
from typing import Final

import orjson

from pyverno.cluster.access import Access, ExecPlugin
from pyverno.errors import HostError
from pyverno.kube.json import JSON, JSONObject
from pyverno.programs import find_program
from pyverno.value import dataclass

# trust rows: environment, kubeconfig

__all__ = ["Credentials", "Identity"]

_FILE_SECONDS: Final = 60.0
_MAX_TOKEN: Final = 64 << 10
_MAX_OUTPUT: Final = 1 << 20
_PLUGIN_SECONDS: Final = 60.0
_EARLY_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class Identity:
    """The identity of a request: headers, or a client certificate with its key (PEM)."""

    authorization: str = ""
    certificate: bytes = b""
    key: bytes = b""


class Credentials:
    """Gives the identity of an access, and a fresh one after `forget`."""

    def __init__(self, access: Access) -> None:
        """Take the access; nothing is read or run before it is needed."""
        self._access = access
        self._known: Identity | None = None
        self._until = 0.0
        self._lock = asyncio.Lock()

    async def identity(self) -> Identity:
        """Return the identity for the next request; raises HostError when it cannot be obtained."""
        if self._known is not None and time.monotonic() < self._until:
            return self._known
        async with self._lock:
            if self._known is None or time.monotonic() >= self._until:
                self._known, self._until = await self._fetch()
            return self._known

    def forget(self) -> bool:
        """Drop the cached credential; return whether a new one can differ."""
        self._known, self._until = None, 0.0
        return self._access.exec_plugin is not None or self._access.token_file is not None

    async def _fetch(self) -> tuple[Identity, float]:
        access = self._access
        if access.token_file is not None:
            token = _read_token(access.token_file)
            return Identity(f"Bearer {token}"), time.monotonic() + _FILE_SECONDS
        if access.exec_plugin is not None:
            return await _run(access.exec_plugin, access)
        return _fixed(access), float("inf")


def _read_token(path: Path) -> str:
    """Return the token of a file; raises HostError for a file that holds none."""
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_TOKEN + 1)
    except OSError as error:
        raise HostError(f"the token file `{path}` cannot be read: {error.strerror}") from None
    token = content.strip().decode("ascii", "replace") if len(content) <= _MAX_TOKEN else ""
    if not (token and token.isascii() and token.isprintable()):
        raise HostError(f"the token file `{path}` holds no token")
    return token


def _fixed(access: Access) -> Identity:
    authorization = ""
    if access.token:
        authorization = f"Bearer {access.token}"
    elif access.username:
        pair = f"{access.username}:{access.password}".encode()
        authorization = f"Basic {base64.b64encode(pair).decode()}"
    return Identity(authorization, access.certificate, access.key)


async def _run(plugin: ExecPlugin, access: Access) -> tuple[Identity, float]:
    environment = {**os.environ, **plugin.environment, "KUBERNETES_EXEC_INFO": _exec_info(plugin, access)}
    program = plugin.command if os.sep in plugin.command else find_program(plugin.command, environment.get("PATH"))
    try:
        if program is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        process = await asyncio.create_subprocess_exec(
            program,
            *plugin.arguments,
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
        )
    except OSError as error:
        hint = f"; {plugin.install_hint}" if plugin.install_hint else ""
        raise HostError(f"the credential plugin `{plugin.command}` cannot be run: {error.strerror}{hint}") from None
    try:
        async with asyncio.timeout(_PLUGIN_SECONDS):
            output = await _read_output(process)
            await process.wait()
    except TimeoutError:
        raise HostError(f"the credential plugin `{plugin.command}` did not answer within a minute") from None
    finally:
        if process.returncode is None:  # it is late, or its request was cancelled
            process.kill()
            await process.wait()
    if len(output) > _MAX_OUTPUT:
        raise HostError(f"the credential plugin `{plugin.command}` printed more than a credential")
    if process.returncode:
        raise HostError(f"the credential plugin `{plugin.command}` ended with code {process.returncode}")
    return _read(plugin, output)


async def _read_output(process: asyncio.subprocess.Process) -> bytes:
    """Return what a plugin prints, up to just beyond the longest credential."""
    assert process.stdout is not None  # noqa: S101  # it is a pipe
    output = b""
    while len(output) <= _MAX_OUTPUT and (more := await process.stdout.read(_MAX_OUTPUT)):
        output += more
    if len(output) > _MAX_OUTPUT:
        process.kill()
    return output


def _exec_info(plugin: ExecPlugin, access: Access) -> str:
    spec: JSONObject = {"interactive": False}
    if plugin.provides_cluster_info:
        cluster: JSONObject = {"server": access.server}
        if access.ca:
            cluster["certificate-authority-data"] = base64.b64encode(access.ca).decode()
        spec["cluster"] = cluster
    return orjson.dumps({"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec}).decode()


def _read(plugin: ExecPlugin, output: bytes) -> tuple[Identity, float]:
    try:
        printed: JSON = orjson.loads(output)
        status = printed["status"]
        token = status.get("token", "")
        certificate, key = status.get("clientCertificateData", ""), status.get("clientKeyData", "")
        ends = status.get("expirationTimestamp")
        seconds = float("inf") if ends is None else _seconds_until(ends)
        if not all(isinstance(each, str) for each in (token, certificate, key)):
            raise TypeError
        if not (token and token.isprintable()) and not (certificate and key):
            raise ValueError
        identity = Identity(f"Bearer {token}" if token else "", certificate.encode(), key.encode())
    except (ValueError, KeyError, TypeError, AttributeError):
        raise HostError(f"the credential plugin `{plugin.command}` printed no ExecCredential") from None
    return identity, time.monotonic() + seconds - _EARLY_SECONDS


def _seconds_until(timestamp: str) -> float:
    return datetime.fromisoformat(timestamp).timestamp() - time.time()
