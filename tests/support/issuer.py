"""An OpenID Connect issuer in this process: it accepts every login, and can be set to respond incorrectly."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlencode

from aiohttp import web
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

__all__ = ["CLIENT", "SECRET", "Issuer", "SigningKey", "serve_issuer"]

CLIENT, SECRET = "pyverno", "s3cret"
_RSA_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
_EC_KEY = ec.generate_private_key(ec.SECP256R1())


def encode(data: bytes | dict[str, Any]) -> str:
    """Return base64url without padding."""
    raw = json.dumps(data).encode() if isinstance(data, dict) else data
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


class SigningKey:
    """A signing key of an issuer, with its JWK."""

    def __init__(self, algorithm: str = "RS256", name: str = "one") -> None:
        """Take the algorithm (RS256, PS256 or ES256) and the name of the key."""
        self.algorithm, self.name = algorithm, name

    def jwk(self) -> dict[str, str]:
        """Return the public key."""
        if self.algorithm == "ES256":
            point = _EC_KEY.public_key().public_numbers()
            numbers = {"x": encode(point.x.to_bytes(32)), "y": encode(point.y.to_bytes(32))}
            return {"kty": "EC", "crv": "P-256", "kid": self.name, "use": "sig", **numbers}
        public = _RSA_KEY.public_key().public_numbers()
        return {"kty": "RSA", "kid": self.name, "n": encode(public.n.to_bytes(256)), "e": encode(b"\x01\x00\x01")}

    def sign(self, claims: dict[str, Any], **header: Any) -> str:
        """Return a token."""
        signed = f"{encode({'alg': self.algorithm, 'kid': self.name, **header})}.{encode(claims)}"
        data = signed.encode()
        if self.algorithm == "ES256":
            r, s = decode_dss_signature(_EC_KEY.sign(data, ec.ECDSA(hashes.SHA256())))
            signature = r.to_bytes(32) + s.to_bytes(32)
        elif self.algorithm == "PS256":
            signature = _RSA_KEY.sign(data, padding.PSS(padding.MGF1(hashes.SHA256()), 32), hashes.SHA256())
        else:
            signature = _RSA_KEY.sign(data, padding.PKCS1v15(), hashes.SHA256())
        return f"{signed}.{encode(signature)}"


class Issuer:
    """The URL of the issuer, the claims of the next login, and its faults."""

    def __init__(self) -> None:
        """Start with the login of one user."""
        self.url = ""
        self.key = SigningKey()
        self.claims: dict[str, Any] = {
            "sub": "1",
            "email": "ann@example.org",
            "email_verified": True,
            "groups": ["team-a"],
        }
        self.described: dict[str, Any] = {}
        self.asked: list[str] = []
        self._codes: dict[str, tuple[str, str, str]] = {}

    def app(self) -> web.Application:
        """Return the routes."""
        app = web.Application()
        app.router.add_get("/.well-known/openid-configuration", self._describe)
        app.router.add_get("/authorize", self._authorize)
        app.router.add_post("/token", self._token)
        app.router.add_get("/keys", self._keys)
        return app

    async def _describe(self, _: web.Request) -> web.Response:
        self.asked.append("describe")
        return web.json_response(
            {
                "issuer": self.url,
                "authorization_endpoint": f"{self.url}/authorize",
                "token_endpoint": f"{self.url}/token",
                "jwks_uri": f"{self.url}/keys",
                **self.described,
            }
        )

    async def _authorize(self, request: web.Request) -> web.StreamResponse:
        query = request.query
        assert ("code", CLIENT, "S256") == (query["response_type"], query["client_id"], query["code_challenge_method"])
        assert "openid" in query["scope"].split()
        code = secrets.token_urlsafe(8)
        self._codes[code] = (query["nonce"], query["code_challenge"], query["redirect_uri"])
        raise web.HTTPFound(f"{query['redirect_uri']}?{urlencode({'state': query['state'], 'code': code})}")

    async def _token(self, request: web.Request) -> web.Response:
        form = await request.post()
        nonce, challenge, redirect = self._codes.pop(str(form["code"]), ("", "", ""))
        proof = encode(hashlib.sha256(str(form["code_verifier"]).encode()).digest())
        if (proof, form["redirect_uri"], form.get("client_secret")) != (challenge, redirect, SECRET):
            return web.json_response({"error": "invalid_grant"}, status=400)
        return web.json_response({"id_token": self.key.sign(self.complete(nonce)), "access_token": "x"})

    async def _keys(self, _: web.Request) -> web.Response:
        self.asked.append("keys")
        return web.json_response({"keys": [self.key.jwk()]})

    def complete(self, nonce: str) -> dict[str, Any]:
        """Return valid claims of a token, changed by `claims`."""
        now = int(time.time())
        return {"iss": self.url, "aud": CLIENT, "iat": now, "exp": now + 300, "nonce": nonce, **self.claims}


@asynccontextmanager
async def serve_issuer() -> AsyncIterator[Issuer]:
    """Serve an issuer on a free port."""
    issuer = Issuer()
    runner = web.AppRunner(issuer.app())
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        issuer.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield issuer
    finally:
        await runner.cleanup()
