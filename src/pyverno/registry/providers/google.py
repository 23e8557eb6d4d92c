"""Google's registries: the token of the metadata server's service account."""

from __future__ import annotations

from typing import Final

from pyverno.registry.credentials import Credential
from pyverno.registry.providers.ambient import Ambient, CloudRequest, seconds_of, text_of
from pyverno.registry.providers.chain import Login

__all__ = ["Google"]

_WHAT: Final = "the metadata server of Google"
_PATH: Final = "/computeMetadata/v1/instance/service-accounts/default/token"


class Google:
    """Container Registry (`gcr.io`) and Artifact Registry (`REGION-docker.pkg.dev`)."""

    def __init__(self, ambient: Ambient) -> None:
        """Take the identity of the process; `GCE_METADATA_HOST` names another metadata server."""
        self._ambient = ambient

    def serves(self, registry: str) -> bool:
        """Return whether a host is one of Google's registries.

        >>> [Google(Ambient({})).serves(each) for each in ("eu.gcr.io", "europe-docker.pkg.dev", "notgcr.io")]
        [True, True, False]
        """
        return registry == "gcr.io" or registry.endswith((".gcr.io", "-docker.pkg.dev"))

    async def login(self, registry: str) -> Login | None:
        """Return the access token of the default service account."""
        host = self._ambient.text("GCE_METADATA_HOST") or "metadata.google.internal"
        request = CloudRequest("GET", f"http://{host}{_PATH}", _WHAT, {"Metadata-Flavor": "Google"})
        body = await self._ambient.ask(request)
        token = text_of(body, "access_token", _WHAT)
        credential = Credential("oauth2accesstoken", token, source="provider google")
        return Login(credential, seconds_of(body, "expires_in", 300))
