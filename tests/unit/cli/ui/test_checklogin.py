"""`pyverno ui check-login` reports what is wrong with a login and prints no credential."""

from __future__ import annotations

import asyncio
import contextlib
import io
from pathlib import Path
from typing import Any

import pytest

from pyverno.cli.root import run
from tests.support.issuer import CLIENT, Issuer, serve_issuer


def check(
    *words: str, claims: dict[str, Any] | None = None, described: dict[str, Any] | None = None, folder: Path
) -> tuple[int, str]:
    """Run the command against an issuer with a token that has further claims; return code and output."""

    async def play() -> tuple[int, str]:
        async with serve_issuer() as issuer:
            issuer.described = described or {}
            token = issuer.key.sign({**issuer.complete("n"), **(claims or {})})
            (folder / "token").write_text(token)
            code, printed = await asyncio.to_thread(_run, issuer, folder, words)
            assert not any(part in printed for part in token.split("."))
            return code, printed

    return asyncio.run(play())


def _run(issuer: Issuer, folder: Path, words: tuple[str, ...]) -> tuple[int, str]:
    out = io.StringIO()
    flags = ["--oidc-issuer", issuer.url, "--oidc-client-id", CLIENT, "--public-url", "https://policy.example.org"]
    flags += ["--oidc-username-claim", "email", "--oidc-groups-claim", "groups"]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        code = run(["ui", "check-login", *flags, "--token-file", str(folder / "token"), *words])
    return code, out.getvalue()


def test_a_login_that_works_is_reported_step_by_step(tmp_path: Path) -> None:
    """The redirect address is what most logins fail for; claims are named, and their values are not."""
    code, printed = check(folder=tmp_path)
    assert 0 == code, printed
    assert "comes back to https://policy.example.org/login/callback" in printed
    assert "its claims: aud, email, email_verified, exp, groups, iat, iss, nonce, sub" in printed
    assert "1 groups in `groups`" in printed
    assert "ann@example.org" not in printed


@pytest.mark.parametrize(
    ("words", "claims", "described", "reason"),
    [
        ((), {"aud": "other"}, {}, "wrong: the token is for another client"),
        ((), {"exp": 1}, {}, "wrong: the token is not valid at this time (`exp`)"),
        (("--oidc-username-claim", "upn"), {}, {}, "wrong: no claim `upn` with a text in the token: give"),
        (("--allow-groups", "admins"), {}, {}, "wrong: this user is not admitted"),
        ((), {}, {"issuer": "https://x"}, "wrong: the issuer names itself `https://x`"),
        ((), {}, {"jwks_uri": "https://127.0.0.1:1/keys"}, "does not answer"),
    ],
)
def test_what_is_wrong_is_one_line(
    words: tuple[str, ...], claims: dict[str, Any], described: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    """After the steps that work."""
    code, printed = check(*words, claims=claims, described=described, folder=tmp_path)
    assert 1 == code
    assert reason in printed
    assert "Traceback" not in printed
