"""Programs that keep the credentials of docker (`docker-credential-NAME`), for command lines.

Only names that the configuration of docker holds are run, without a shell, with a limit on time and output. Controllers
never run a program.
"""

from __future__ import annotations

import asyncio
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Sequence
from typing import Final

from pyverno.errors import DocumentError, HostError
from pyverno.kube.imageref.hosts import is_docker_hub, registry_name
from pyverno.kube.json import JSONObject, decode
from pyverno.lazyregex import regex
from pyverno.programs import find_program
from pyverno.registry.credentials import Credential, CredentialSource

# trust rows: docker-configuration

__all__ = ["CredentialHelpers"]

_NAME: Final = regex(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_MAX_BYTES: Final = 65_536
_SECONDS: Final = 10.0
_HUB: Final = "https://index.docker.io/v1/"
_NOT_FOUND: Final = b"credentials not found"


class CredentialHelpers:
    """Runs helper programs; `search_path` is where they are looked for, as `PATH` writes it."""

    def __init__(self, search_path: str, seconds: float = _SECONDS) -> None:
        """Take the search path, and how long a program may take."""
        self._search_path = search_path
        self._seconds = seconds

    async def sources(self, config: bytes, registry: str) -> Sequence[CredentialSource]:
        """Return what the program gives that a configuration names for a registry; raises HostError."""
        name = _helper_of(config, registry)
        if not name:
            return ()
        if not _NAME.fullmatch(name):
            raise HostError("the configuration of docker names a credential helper that is no plain name")
        program = find_program(f"docker-credential-{name}", self._search_path)
        if program is None:
            raise HostError(f"the credential helper `docker-credential-{name}` is not installed")
        answer = await self._run(program, name, _HUB if is_docker_hub(registry) else registry)
        if answer is None:
            return ()
        source = f"docker-credential-{name}"
        return (CredentialSource(source, ((registry, _credential(answer, source)),)),)

    async def _run(self, program: str, name: str, server: str) -> JSONObject | None:
        """Return the answer of a program, None when it knows no credential."""
        what = f"the credential helper `docker-credential-{name}`"
        try:
            running = await asyncio.create_subprocess_exec(program, "get", stdin=PIPE, stdout=PIPE, stderr=DEVNULL)
        except OSError:
            raise HostError(f"{what} cannot be run") from None
        try:
            async with asyncio.timeout(self._seconds):
                output = await _exchange(running, server)
                status = await running.wait()
        except TimeoutError:
            raise HostError(f"{what} did not answer within {self._seconds:g} seconds") from None
        finally:
            if running.returncode is None:
                running.kill()
                await running.wait()
        if len(output) > _MAX_BYTES:
            raise HostError(f"{what} answers with more than {_MAX_BYTES} bytes")
        if status != 0:
            if _NOT_FOUND in output[:256].lower():
                return None
            raise HostError(f"{what} ended with {status}")
        try:
            found = decode(output)
        except DocumentError:
            found = None
        if not isinstance(found, dict):
            raise HostError(f"{what} answers with no JSON object")
        return found


async def _exchange(running: asyncio.subprocess.Process, server: str) -> bytes:
    assert running.stdin is not None and running.stdout is not None  # noqa: S101 - both are pipes
    try:
        running.stdin.write(f"{server}\n".encode())
        await running.stdin.drain()
        running.stdin.close()
    except (BrokenPipeError, ConnectionResetError):
        pass  # a program may answer without reading
    output = b""
    while len(output) <= _MAX_BYTES and (part := await running.stdout.read(_MAX_BYTES)):
        output += part
    if len(output) > _MAX_BYTES:
        running.kill()
    return output


def _helper_of(config: bytes, registry: str) -> str:
    try:
        body = decode(config)
    except DocumentError:
        return ""  # the caller reports it
    helpers = body.get("credHelpers") if isinstance(body, dict) else None
    listed = helpers if isinstance(helpers, dict) else {}
    wanted = registry_name(registry)
    named = next((name for host, name in listed.items() if registry_name(host) == wanted), None)
    found = named or (body.get("credsStore") if isinstance(body, dict) else None)
    return found if isinstance(found, str) else ""


def _credential(answer: JSONObject, source: str) -> Credential:
    name, secret = answer.get("Username"), answer.get("Secret")
    if not isinstance(name, str) or not isinstance(secret, str):
        raise HostError(f"{source} answers without user name and secret")
    if name == "<token>":
        return Credential(identity_token=secret, source=source)
    return Credential(name, secret, source=source)
