"""Public keys of key management systems, each against a stub of its protocol."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable
from tempfile import NamedTemporaryFile

import pytest
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from pyverno.errors import HostError
from pyverno.images.verification.keys import read_key
from pyverno.registry.providers.ambient import Ambient
from pyverno.registry.providers.publickeys import PublicKeys

KEY = ec.generate_private_key(ec.SECP256R1()).public_key()
PEM = KEY.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
DER = KEY.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
GOOGLE = "projects/p/locations/l/keyRings/r/cryptoKeys/k"


def _number(value: int) -> str:
    raw = value.to_bytes((value.bit_length() + 7) // 8)
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


RSA_KEY = rsa.generate_private_key(65537, 2048).public_key()
_POINT, _RSA = KEY.public_numbers(), RSA_KEY.public_numbers()
JWKS = {
    "signing/": {"kty": "EC-HSM", "crv": "P-256", "x": _number(_POINT.x), "y": _number(_POINT.y)},
    f"signing/{'0' * 32}": {"kty": "RSA", "n": _number(_RSA.n), "e": _number(_RSA.e)},
    "oct/": {"kty": "oct"},
    "off/": {"kty": "EC", "crv": "P-256", "x": _number(_POINT.x), "y": _number(_POINT.y + 1)},
    "curve/": {"kty": "EC", "crv": "P-256K", "x": _number(_POINT.x), "y": _number(_POINT.y)},
}


async def _answer(request: web.Request) -> web.StreamResponse:
    """Answer for every key management system, as its documentation describes."""
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
    if request.path == "/of-azure/oauth2/v2.0/token":
        form = await request.post()
        assert ("https://vault.azure.net/.default", "federated") == (form["scope"], form["client_assertion"])
        return web.json_response({"access_token": "of-entra"})
    if request.path.startswith("/team.vault.azure.net/keys/") and request.query["api-version"] == "7.4":
        assert request.headers["Authorization"] == "Bearer of-entra"
        found = JWKS.get(request.path.removeprefix("/team.vault.azure.net/keys/"))
        return web.json_response({} if found is None else {"key": found}, status=404 if found is None else 200)
    return web.json_response({}, status=404)


def _fetch(work: Callable[[PublicKeys], Awaitable[str]], answer: object = _answer) -> str:
    async def run(token: str) -> str:
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
            "AZURE_TENANT_ID": "of-azure",
            "AZURE_CLIENT_ID": "client",
            "AZURE_FEDERATED_TOKEN_FILE": token,
            "AZURE_AUTHORITY_HOST": base,
        }
        try:
            keys = PublicKeys(Ambient(environment), google=base, azure=lambda vault: f"{base}/{vault}")
            return await work(keys)
        finally:
            await runner.cleanup()

    with NamedTemporaryFile("w", suffix=".jwt") as file:
        file.write("federated")
        file.flush()
        return asyncio.run(run(file.name))


@pytest.mark.parametrize(
    "reference",
    [
        "hashivault://signing",
        "awskms:///alias/key",
        f"gcpkms://{GOOGLE}/versions/3",
        "azurekms://team.vault.azure.net/signing",
    ],
)
def test_the_public_key_is_fetched_by_its_name(reference: str) -> None:
    """The request has the identity of the process; the response holds a key that verifies."""
    pem = _fetch(lambda keys: keys.fetch(reference))
    assert read_key(PEM.encode()).der == read_key(pem.encode()).der


def test_a_version_of_a_key_may_be_of_another_kind() -> None:
    """Azure encodes every key as numbers, RSA keys included."""
    pem = _fetch(lambda keys: keys.fetch(f"azurekms://team.vault.azure.net/signing/{'0' * 32}"))
    expected = RSA_KEY.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    assert expected == read_key(pem.encode()).der


@pytest.mark.parametrize(
    ("reference", "problem"),
    [
        ("awskms://evil.example.com/alias/key", "another endpoint"),
        ("gcpkms://projects/p", "is written gcpkms://"),
        ("hashivault://../sys/raw", "is written hashivault://NAME"),
        ("hashivault://other", "^Vault answers 404$"),
        ("azurekms://vault/key", "is written azurekms://"),
        ("azurekms://team.vault.azure.net.evil.org/key", "is written azurekms://"),
        ("azurekms://team.vault.azure.net/other", "^Azure Key Vault answers 404$"),
        ("azurekms://team.vault.azure.net/oct", "a key of the type `oct`"),
        ("azurekms://team.vault.azure.net/off", "a key that cannot be read"),
        ("azurekms://team.vault.azure.net/curve", "a key that cannot be read"),
        ("otherkms://key", "cannot be fetched in this version"),
    ],
)
def test_a_name_that_is_no_key_is_an_error(reference: str, problem: str) -> None:
    """A policy cannot choose the address or the path that receives the identity.

    CVE-2026-24117, CVE-2026-22772, CVE-2026-49478.
    """
    with pytest.raises(HostError, match=problem):
        _fetch(lambda keys: keys.fetch(reference))


def test_a_key_is_requested_once_while_it_is_cached() -> None:
    """The cache lasts ten minutes, so a rotation takes effect after that time."""
    calls: list[str] = []

    async def counted(request: web.Request) -> web.StreamResponse:
        calls.append(request.path)
        return await _answer(request)

    async def twice(keys: PublicKeys) -> str:
        await keys.fetch("hashivault://signing")
        return await keys.fetch("hashivault://signing")

    _fetch(twice, counted)
    assert 1 == len(calls)
