"""The flags of the login, and the middleware and routes that they give."""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.typedefs import Middleware

from pyverno.cluster.client import Client
from pyverno.errors import UsageError
from pyverno.offline.files import read_file
from pyverno.ui.access.identity import Admission, Identifier
from pyverno.ui.access.login import LoginRoutes, admit
from pyverno.ui.access.oidc import SCOPES, OidcLogins, OidcSettings
from pyverno.ui.access.proxy import ProxyHeaders, read_networks
from pyverno.ui.access.rights import KubernetesRights
from pyverno.ui.access.sessions import Sessions
from pyverno.ui.access.userclaims import UserClaims
from pyverno.ui.access.viewer import Rights
from pyverno.value import dataclass, fields

__all__ = ["LOGIN_FLAGS", "LoginOptions", "LoginSetup", "build_login", "oidc_settings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginOptions:
    """The flags of the section Login."""

    issuer: str = ""
    client: str = ""
    secret_file: str = ""
    scopes: tuple[str, ...] = ()
    username_claim: str = "sub"
    username_prefix: str = ""
    groups_claim: str = ""
    groups_prefix: str = ""
    ca_file: str = ""
    public_url: str = ""
    token_file: str = ""
    proxy_user_header: str = ""
    proxy_groups_header: str = ""
    proxy_peers: tuple[str, ...] = ()
    allow_users: tuple[str, ...] = ()
    allow_groups: tuple[str, ...] = ()
    rights: str = ""
    rights_user_prefix: str = ""
    rights_groups_prefix: str = ""

    @property
    def is_on(self) -> bool:
        """Return whether the pages require a login."""
        return bool(self.issuer or self.proxy_user_header)

    def check(self) -> None:
        """Raise UsageError for flags that do not fit together: a login must not be open by mistake."""
        if self.issuer and self.proxy_user_header:
            raise UsageError("give either --oidc-issuer or --proxy-user-header, not both")
        if self.issuer and not self.public_url:
            raise UsageError("--oidc-issuer needs --public-url: the address that browsers come back to")
        if self.proxy_user_header and not self.proxy_peers:
            raise UsageError("--proxy-user-header needs --proxy-peers: every client could send that header")
        if not self.proxy_user_header and (self.proxy_groups_header or self.proxy_peers):
            raise UsageError("--proxy-groups-header and --proxy-peers need --proxy-user-header")
        if not self.is_on and (self.allow_users or self.allow_groups or self.rights == "kubernetes"):
            raise UsageError(
                "--allow-users, --allow-groups and --rights need a login: --oidc-issuer or --proxy-user-header"
            )
        if self.issuer and (self.rights_user_prefix or self.rights_groups_prefix):
            raise UsageError(
                "--rights-user-prefix and --rights-groups-prefix are for a proxy: with --oidc-issuer give "
                "--oidc-username-prefix and --oidc-groups-prefix"
            )
        if self.issuer and self.allow_groups and not self.groups_claim:
            raise UsageError("--allow-groups needs --oidc-groups-claim: the claim of a token that holds the groups")


LOGIN_FLAGS: Final = tuple(each.name for each in fields(LoginOptions))


@dataclass(frozen=True, slots=True)
class LoginSetup:
    """The middleware that admits users and the routes of the login; nothing without a login."""

    middleware: Middleware | None = None
    routes: tuple[web.RouteDef, ...] = ()


def oidc_settings(login: LoginOptions, base_path: str) -> OidcSettings:
    """Return the settings of logins by OpenID Connect; raises UsageError."""
    secret = read_file(Path(login.secret_file)).decode().strip() if login.secret_file else ""
    tls = None
    if login.ca_file:
        try:
            tls = ssl.create_default_context(cadata=read_file(Path(login.ca_file)).decode())
        except (ssl.SSLError, UnicodeDecodeError) as error:
            raise UsageError(f"`{login.ca_file}` holds no certificates in PEM") from error
    return OidcSettings(
        login.issuer,
        login.client,
        f"{login.public_url.rstrip('/')}{base_path}/login/callback",
        secret,
        login.scopes or SCOPES,
        UserClaims(login.username_claim, login.username_prefix, login.groups_claim, login.groups_prefix),
        tls,
    )


def build_login(
    login: LoginOptions,
    base_path: str,
    clients: Iterable[Client],
    namespaces: Callable[[], Awaitable[Iterable[str]]],
    stack: AsyncExitStack,
) -> LoginSetup:
    """Return the login of the flags; `clients` are those of the clusters. Raises UsageError."""
    if not login.is_on:
        return LoginSetup()
    rights = _rights(login, list(clients), namespaces)
    admission = Admission(login.allow_users, login.allow_groups)
    identifier: Identifier
    routes: tuple[web.RouteDef, ...] = ()
    if login.issuer:
        logins = OidcLogins(oidc_settings(login, base_path))
        stack.push_async_callback(logins.close)
        is_secure = urlsplit(login.public_url).scheme == "https"
        sessions = Sessions(path=base_path, is_secure=is_secure)
        identifier, routes = sessions, tuple(LoginRoutes(logins, sessions, base_path=base_path).routes())
    else:
        identifier = ProxyHeaders(login.proxy_user_header, login.proxy_groups_header, read_networks(login.proxy_peers))
    return LoginSetup(admit(identifier, admission, rights, base_path=base_path, has_login=bool(routes)), routes)


def _rights(
    login: LoginOptions, clients: list[Client], namespaces: Callable[[], Awaitable[Iterable[str]]]
) -> Rights | None:
    wanted = login.rights or ("kubernetes" if clients else "all")  # guard: the default are the rights of the user
    if wanted == "all":
        return None
    if len(clients) != 1:
        raise UsageError(
            "--rights kubernetes needs the reports of one cluster: run a server for each cluster, or give --rights all"
        )
    return KubernetesRights(
        clients[0], namespaces, user_prefix=login.rights_user_prefix, groups_prefix=login.rights_groups_prefix
    )
