"""Public keys of key management systems, each against a stub of its protocol."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable

import pytest
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from pyverno.errors import HostError
from pyverno.images.verification.keys import read_key
from pyverno.registry.providers.ambient import Ambient
from pyverno.registry.providers.publickeys import PublicKeys

KEY = ec.generate_private_key(ec.SECP256R1()).public_key()
PEM = KEY.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
DER = KEY.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
GOOGLE = "projects/p/locations/l/keyRings/r/cryptoKeys/k"


async def _answer(request: web.Request) -> web.StreamResponse:
    """Be every system at once, as their documentation says."""
    if request.path == "/v1/transit/keys/signing" and request.headers.get("X-Vault-Token") == "token":
        return web.json_response({"data": {"latest_version": 2, "keys": {"1": {}, "2": {"public_key": PEM}}}})
    if request.path == "/kms" and request.headers["X-Amz-Target"] == "TrentService.GetPublicKey":
        assert (await request.json()) == {"KeyId": "alias/key"}
        assert "/eu-west-1/kms/aws4_request" in request.headers["Authorization"]
        return web.json_response({"PublicKey": base64.b64encode(DER).decode()})
    if request.path.startswith("/computeMetadata"):
        return web.json_response({"access_token": "of-google"})
    if request.path == f"/v1/{GOOGLE}/cryptoKeyVersions/3/publicKey":
        assert request.headers["Authorization"] == "Bearer of-google"
        return web.json_response({"pem": PEM})
    return web.json_response({}, status=404)


def _fetch(work: Callable[[PublicKeys], Awaitable[str]], answer: object = _answer) -> str:
    async def run() -> str:
        app = web.Application()
        app.router.add_route("*", "/{tail:.*}", answer)  # type: ignore[arg-type]
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        base = f"http://127.0.0.1:{runner.addresses[0][1]}"
        environment = {
            "VAULT_ADDR": base,
            "VAULT_TOKEN": "token",
            "AWS_ACCESS_KEY_ID": "A",
            "AWS_SECRET_ACCESS_KEY": "S",
            "AWS_REGION": "eu-west-1",
            "AWS_ENDPOINT_URL_KMS": f"{base}/kms",
            "GCE_METADATA_HOST": base[7:],
        }
        try:
            return await work(PublicKeys(Ambient(environment), google=base))
        finally:
            await runner.cleanup()

    return asyncio.run(run())


@pytest.mark.parametrize("reference", ["hashivault://signing", "awskms:///alias/key", f"gcpkms://{GOOGLE}/versions/3"])
def test_the_public_key_is_fetched_by_its_name(reference: str) -> None:
    """With the identity of the process; the answer is a key that verifies."""
    pem = _fetch(lambda keys: keys.fetch(reference))
    assert read_key(PEM.encode()).der == read_key(pem.encode()).der


@pytest.mark.parametrize(
    ("reference", "problem"),
    [
        ("awskms://evil.example.com/alias/key", "another endpoint"),
        ("gcpkms://projects/p", "is written gcpkms://"),
        ("hashivault://../sys/raw", "is written hashivault://NAME"),
        ("hashivault://other", "^Vault answers 404$"),
        ("azurekms://vault/key", "cannot be fetched in this version"),
    ],
)
def test_a_name_that_is_no_key_is_an_error(reference: str, problem: str) -> None:
    """A policy chooses neither the address nor the path that the identity goes to."""
    with pytest.raises(HostError, match=problem):
        _fetch(lambda keys: keys.fetch(reference))


def test_a_key_is_asked_for_once_while_it_is_kept() -> None:
    """Rotation is seen after ten minutes."""
    calls: list[str] = []

    async def counted(request: web.Request) -> web.StreamResponse:
        calls.append(request.path)
        return await _answer(request)

    async def twice(keys: PublicKeys) -> str:
        await keys.fetch("hashivault://signing")
        return await keys.fetch("hashivault://signing")

    _fetch(twice, counted)
    assert 1 == len(calls)
