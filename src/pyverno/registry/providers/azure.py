"""Azure's registries: a token of Entra ID, by workload identity, exchanged for one of the registry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final
from urllib.parse import quote, urlencode

from pyverno.registry.credentials import Credential
from pyverno.registry.providers.ambient import Ambient, CloudRequest, text_of
from pyverno.registry.providers.chain import Login

__all__ = ["Azure", "entra_token"]

_SUFFIXES: Final = (".azurecr.io", ".azurecr.cn", ".azurecr.de", ".azurecr.us")
_FORM: Final = {"Content-Type": "application/x-www-form-urlencoded"}
_ENTRA: Final = "Entra ID"
_METADATA: Final = "the metadata service of Azure"
_METADATA_URL: Final = "http://169.254.169.254/metadata/identity/oauth2/token"
_SECONDS: Final = 3600.0


class Azure:
    """Azure Container Registry, with workload identity or else the managed identity of the machine."""

    def __init__(self, ambient: Ambient, base: Callable[[str], str] = lambda registry: f"https://{registry}") -> None:
        """Take the identity of the process, and the function that makes a registry's address."""
        self._ambient = ambient
        self._base = base

    def serves(self, registry: str) -> bool:
        """Return whether a host is one of Azure's registries.

        >>> [Azure(Ambient({})).serves(each) for each in ("team.azurecr.io", "azurecr.io.example.com")]
        [True, False]
        """
        return registry.endswith(_SUFFIXES)

    async def login(self, registry: str) -> Login | None:
        """Return the refresh token of a registry, which is exchanged for access tokens."""
        token = await entra_token(self._ambient, "https://containerregistry.azure.net/")
        form = {"grant_type": "access_token", "service": registry, "access_token": token}
        if self._ambient.text("AZURE_TENANT_ID"):
            form["tenant"] = self._ambient.text("AZURE_TENANT_ID")
        what = f"the token exchange of `{registry}`"
        url = f"{self._base(registry)}/oauth2/exchange"
        body = await self._ambient.ask(CloudRequest("POST", url, what, _FORM, urlencode(form).encode()))
        refresh = text_of(body, "refresh_token", what)
        return Login(Credential(identity_token=refresh, source="provider azure"), _SECONDS)


async def entra_token(ambient: Ambient, scope: str) -> str:
    """Return a token for a service of Azure, named by its address, with the identity of the process."""
    read = ambient.text
    tenant, client, path = read("AZURE_TENANT_ID"), read("AZURE_CLIENT_ID"), read("AZURE_FEDERATED_TOKEN_FILE")
    if not (tenant and client and path):
        query = {"api-version": "2018-02-01", "resource": scope, **({"client_id": client} if client else {})}
        request = CloudRequest("GET", f"{_METADATA_URL}?{urlencode(query)}", _METADATA, {"Metadata": "true"})
        return text_of(await ambient.ask(request), "access_token", _METADATA)
    form = {
        "grant_type": "client_credentials",
        "client_id": client,
        "scope": f"{scope}.default",
        "client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
        "client_assertion": ambient.read_file(path, "the token of the workload identity"),
    }
    authority = (read("AZURE_AUTHORITY_HOST") or "https://login.microsoftonline.com").rstrip("/")
    url = f"{authority}/{quote(tenant, safe='')}/oauth2/v2.0/token"
    body = await ambient.ask(CloudRequest("POST", url, _ENTRA, _FORM, urlencode(form).encode()))
    return text_of(body, "access_token", _ENTRA)
