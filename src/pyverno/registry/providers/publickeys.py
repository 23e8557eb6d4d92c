"""Public keys of key management systems, fetched with the identity of this process.

Verification needs the public key only. Addresses come from the environment, never from a policy: the author of a policy
must not choose who receives the identity.
"""

from __future__ import annotations

import base64
import binascii
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Final
from urllib.parse import quote

from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from pyverno.errors import HostError, VerificationError
from pyverno.images.verification.strictjson import decode_base64
from pyverno.kube.json import JSON, JSONObject
from pyverno.lazyregex import regex
from pyverno.registry.awssignature import Signing, sign
from pyverno.registry.providers.amazon import AwsIdentity
from pyverno.registry.providers.ambient import Ambient, CloudRequest, text_of
from pyverno.registry.providers.azure import entra_token
from pyverno.registry.providers.google import Google

__all__ = ["PublicKeys"]

_KEPT_SECONDS: Final = 600.0
_MAX_KEPT: Final = 256
_PEM: Final = "-----BEGIN PUBLIC KEY-----"
_AWS_KEY: Final = regex(r"[A-Za-z0-9:/_-]{1,512}")
_ARN: Final = regex(r"arn:aws[a-z-]*:kms:([a-z0-9-]+):[0-9]{12}:.+")
_GOOGLE_KEY: Final = regex(
    r"(projects/[^/]+/locations/[^/]+/keyRings/[^/]+/cryptoKeys/[^/]+)/(?:cryptoKeyVersions|versions)/([0-9]+)"
)
_AZURE_KEY: Final = regex(
    r"([A-Za-z0-9-]{1,127}\.(?:vault|managedhsm)\.(azure\.net|azure\.cn|usgovcloudapi\.net))/([A-Za-z0-9-]{1,127})(?:/([0-9a-f]{32}))?"
)
_CURVES: Final[Mapping[str, Callable[[], ec.EllipticCurve]]] = {
    "P-256": ec.SECP256R1,
    "P-384": ec.SECP384R1,
    "P-521": ec.SECP521R1,
}
_VAULT_KEY: Final = regex(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,254}")


class PublicKeys:
    """Fetches keys by URI and keeps them for ten minutes; belongs to one event loop."""

    def __init__(
        self,
        ambient: Ambient,
        clock: Callable[[], float] = time.time,
        google: str = "https://cloudkms.googleapis.com",
        azure: Callable[[str], str] = lambda vault: f"https://{vault}",
    ) -> None:
        """Take the identity of the process, the clock that signs requests, and the addresses of Google and Azure."""
        self._ambient = ambient
        self._clock = clock
        self._google = google
        self._azure = azure
        self._kept: dict[str, tuple[str, float]] = {}
        self._fetchers: Mapping[str, Callable[[str], Awaitable[str]]] = {
            "awskms": self._of_amazon,
            "azurekms": self._of_azure,
            "gcpkms": self._of_google,
            "hashivault": self._of_vault,
        }

    async def fetch(self, reference: str) -> str:
        """Return the PEM of the key that a URI names; raises HostError."""
        kept = self._kept.get(reference)
        if kept is not None and self._clock() < kept[1]:
            return kept[0]
        scheme, _, rest = reference.partition("://")
        fetcher = self._fetchers.get(scheme)
        if fetcher is None:
            raise HostError(f"keys of `{scheme[:20]}` cannot be fetched in this version: write the public key as PEM")
        pem = await fetcher(rest)
        if not pem.startswith(_PEM):
            raise HostError(f"`{reference[:200]}` names no key that signs images")
        if len(self._kept) >= _MAX_KEPT:
            self._kept.clear()
        self._kept[reference] = (pem, self._clock() + _KEPT_SECONDS)
        return pem

    async def _of_amazon(self, rest: str) -> str:
        endpoint, slash, key = rest.partition("/")
        if endpoint or not slash or not _AWS_KEY.fullmatch(key):
            raise HostError("a key of AWS is written awskms:///ID; AWS_ENDPOINT_URL_KMS names another endpoint")
        read = self._ambient.text
        found = _ARN.fullmatch(key)
        region = found[1] if found is not None else read("AWS_REGION") or read("AWS_DEFAULT_REGION")
        if not region:
            raise HostError("a key of AWS needs a region: AWS_REGION, or the ARN of the key")
        url = read("AWS_ENDPOINT_URL_KMS") or f"https://kms.{region}.amazonaws.com/"
        headers = {"Content-Type": "application/x-amz-json-1.1", "X-Amz-Target": "TrentService.GetPublicKey"}
        question = json.dumps({"KeyId": key}).encode()
        keys = await AwsIdentity(self._ambient).keys(region)
        signing = Signing("kms", region, int(self._clock()))
        signed = sign("POST", url, headers, question, keys=keys, signing=signing)
        body = await self._ambient.ask(CloudRequest("POST", url, "AWS KMS", signed, question))
        try:
            der = base64.b64decode(text_of(body, "PublicKey", "AWS KMS"), validate=True)
        except binascii.Error:
            raise HostError("AWS KMS answers with a key that is not base64") from None
        text = base64.encodebytes(der).decode("ascii")
        return f"{_PEM}\n{text}-----END PUBLIC KEY-----\n"

    async def _of_azure(self, rest: str) -> str:
        found = _AZURE_KEY.fullmatch(rest)
        if found is None:
            # the identity goes to vaults of Azure only
            raise HostError("a key of Azure is written azurekms://NAME.vault.azure.net/KEY or .../KEY/VERSION")
        vault, cloud, key, version = found.groups()
        service = "managedhsm" if ".managedhsm." in vault else "vault"
        token = await entra_token(self._ambient, f"https://{service}.{cloud}/")
        url = f"{self._azure(vault)}/keys/{key}/{version or ''}?api-version=7.4"
        headers = {"Authorization": f"Bearer {token}"}
        body = await self._ambient.ask(CloudRequest("GET", url, "Azure Key Vault", headers))
        return _pem_of_jwk(_object(body.get("key")), "Azure Key Vault")

    async def _of_google(self, rest: str) -> str:
        found = _GOOGLE_KEY.fullmatch(rest)
        if found is None:
            raise HostError(
                "a key of Google is written gcpkms://projects/P/locations/L/keyRings/R/cryptoKeys/K/versions/N"
            )
        login = await Google(self._ambient).login("gcr.io")
        path = quote(f"{found[1]}/cryptoKeyVersions/{found[2]}")
        headers = {"Authorization": f"Bearer {login.credential.password if login else ''}"}
        request = CloudRequest("GET", f"{self._google}/v1/{path}/publicKey", "Google KMS", headers)
        return text_of(await self._ambient.ask(request), "pem", "Google KMS")

    async def _of_vault(self, rest: str) -> str:
        address, token = self._ambient.text("VAULT_ADDR"), self._ambient.text("VAULT_TOKEN")
        if not _VAULT_KEY.fullmatch(rest):
            raise HostError("a key of Vault is written hashivault://NAME")
        if not address or not token:
            raise HostError("a key of Vault needs VAULT_ADDR and VAULT_TOKEN")
        mount = self._ambient.text("TRANSIT_SECRET_ENGINE_PATH") or "transit"
        url = f"{address.rstrip('/')}/v1/{quote(mount.strip('/'))}/keys/{rest}"
        body = await self._ambient.ask(CloudRequest("GET", url, "Vault", {"X-Vault-Token": token}))
        data = _object(body.get("data"))
        version = _object(_object(data.get("keys")).get(str(data.get("latest_version"))))
        return text_of(version, "public_key", "Vault")


def _pem_of_jwk(body: JSONObject, what: str) -> str:
    """Return a key that is written as JSON; raises HostError."""
    kind = text_of(body, "kty", what).removesuffix("-HSM")
    names = {"EC": ("x", "y"), "RSA": ("n", "e")}.get(kind)
    if names is None:
        raise HostError(f"{what} answers with a key of the type `{kind[:20]}`")
    try:
        first, second = (int.from_bytes(decode_base64(body.get(name), name)) for name in names)
        if kind == "RSA":
            key: ec.EllipticCurvePublicKey | rsa.RSAPublicKey = rsa.RSAPublicNumbers(second, first).public_key()
        else:
            key = ec.EllipticCurvePublicNumbers(first, second, _CURVES[text_of(body, "crv", what)]()).public_key()
    except (ValueError, KeyError, VerificationError):
        raise HostError(f"{what} answers with a key that cannot be read") from None
    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


def _object(value: JSON) -> JSONObject:
    return value if isinstance(value, dict) else {}
