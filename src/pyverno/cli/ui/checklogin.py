"""`pyverno ui check-login`: queries the issuer as a login does, and reports step by step what is wrong.

No token, code or secret is printed: of a token only the names of its claims.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from pyverno.cli.terminal import STDOUT
from pyverno.cli.ui.access import oidc_settings
from pyverno.cli.ui.run import UiOptions
from pyverno.errors import PyvernoError, UsageError
from pyverno.offline.files import read_file
from pyverno.ui.access.identity import Admission
from pyverno.ui.access.oidc import OidcLogins

__all__ = ["check_login"]


def check_login(options: UiOptions) -> int:
    """Print the steps of a login; return 0 when all of them work, 1 otherwise."""
    login = options.login
    login.check()
    if len(options.files) > 1:
        raise UsageError(f"check-login takes flags only, not `{options.files[1]}`")
    if not login.issuer:
        raise UsageError("check-login checks logins by OpenID Connect: give --oidc-issuer")
    try:
        asyncio.run(_check(options))
    except PyvernoError as error:
        STDOUT.write(f"wrong: {error.message}\n")
        return 1
    return 0


async def _check(options: UiOptions) -> None:
    login = options.login
    settings = oidc_settings(login, options.base_path)
    logins = OidcLogins(settings)
    try:
        endpoints = await logins.describe()
        _good(f"the issuer `{settings.issuer}` describes itself")
        for name, url in endpoints.items():
            _good(f"{name}: {url}")
        keys = await logins.keys()
        _good(f"{len(keys)} keys: {', '.join(sorted({str(key.get('kty')) for key in keys})) or 'none'}")
        if not keys:
            raise UsageError("the issuer has no keys: no token can be checked")
        address, _ = await logins.begin()
        _good(f"a login begins at {address.partition('?')[0]} and comes back to {settings.callback}")
        _good("the issuer must allow exactly this address as redirect URI")
        if login.token_file:
            await _check_token(options, logins)
    finally:
        await logins.close()


async def _check_token(options: UiOptions, logins: OidcLogins) -> None:
    token = read_file(Path(options.login.token_file)).decode("ascii", "replace").strip()
    claims = await logins.claims(token, None)  # this server did not request it
    _good(f"the token is signed by the issuer, for this client, and valid now; its claims: {', '.join(sorted(claims))}")
    identity = logins.identity(claims)
    groups = f"; {len(identity.groups)} groups in `{options.login.groups_claim}`" if options.login.groups_claim else ""
    _good(f"the user is named by the claim `{options.login.username_claim}`{groups}")
    if not Admission(options.login.allow_users, options.login.allow_groups).allows(identity):
        raise UsageError("this user is not admitted: neither --allow-users nor --allow-groups names them")
    _good("the user is admitted")


def _good(text: str) -> None:
    STDOUT.write(f"good: {text}\n")
