"""Every read of a rule is checked for the viewer: the methods of the host are enumerated."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any, Final

import pytest

from pyverno.engine.host import Host, HttpCall, NoHost
from pyverno.engine.imagesource import ImageAccess, ImageSource, NoImages, SignatureQuery
from pyverno.errors import HostError
from pyverno.images.verification.stored import SignatureForm
from pyverno.kube.apipath import parse_api_path
from pyverno.kube.json import JSON
from pyverno.threads import in_thread
from pyverno.ui.access.access import Access
from pyverno.ui.access.identity import Identity
from pyverno.ui.access.viewer import Viewer
from pyverno.ui.access.viewerhost import ViewerHost, ViewerImages
from pyverno.ui.store.scope import Scope

READS: Final[dict[str, Callable[[Host], object]]] = {
    "api_call": lambda host: host.api_call(parse_api_path("/api/v1/pods"), method="GET", body=None),
    "http_call": lambda host: host.http_call(HttpCall("GET", "https://x.example.org")),
    "http_exchange": lambda host: host.http_exchange(HttpCall("GET", "https://x.example.org")),
    "config_map": lambda host: host.config_map("a", "b"),
    "global_entry": lambda host: host.global_entry("e"),
    "get_object": lambda host: host.get_object("v1", "Pod", "a", "b"),
    "list_objects": lambda host: host.list_objects("v1", "Pod", "a", None),
}
HARMLESS: Final = frozenset(
    {
        "now",
        "random_bits",
        "lookup_host",
        "kinds",
        "record_keys",
        "require_read",
        "supplies_variables",
        "recorded_variables",
    }
)
IMAGES: Final = frozenset({"image_source", "image_data"})
"""Read without credentials."""


class Answering(NoHost):
    """A host that answers everything."""

    def __init__(self) -> None:
        self.read: list[str] = []

    def __getattribute__(self, name: str) -> Any:
        if name in READS:
            return lambda *_, **__: self.read.append(name) or {}
        return super().__getattribute__(name)


class Rights:
    """Rights that allow everything or nothing."""

    def __init__(self, *, allows: bool) -> None:
        self.allows = allows
        self.asked: list[Access] = []

    async def scope(self, _: Identity) -> Scope:
        """Return everything."""
        return None

    async def may(self, _: Identity, access: Access) -> bool:
        """Return the answer."""
        self.asked.append(access)
        return self.allows


def read(name: str, rights: Rights | None, entry: JSON = None) -> list[str]:
    """Return what reaches the cluster when a rule reads for a viewer with these rights."""
    host = Answering()

    async def played() -> None:
        viewer = None if rights is None else Viewer(Identity("ann"), rights)
        loop = asyncio.get_running_loop()
        await in_thread(READS[name], ViewerHost(host, viewer, lambda _: entry, loop))

    asyncio.run(played())
    return host.read


def test_every_method_of_a_host_has_a_row() -> None:
    """A new way to read is checked for the viewer, or named as harmless."""
    named = {name for name, _ in inspect.getmembers(Host) if not name.startswith("_")}
    assert named == {*READS, *HARMLESS, *IMAGES}


PODS: Final[JSON] = {"kubernetesResource": {"group": "", "version": "v1", "resource": "pods", "namespace": "a"}}


@pytest.mark.parametrize("name", READS)
def test_a_read_without_the_right_is_not_sent(name: str) -> None:
    """With the right it is, but for services, whose answers are nobody's; without a viewer all are sent."""
    with pytest.raises(HostError, match=r"you may not|the answers of services"):
        read(name, Rights(allows=False), PODS)
    if name.startswith("http"):
        with pytest.raises(HostError, match="the answers of services"):
            read(name, Rights(allows=True))
    else:
        assert [name] == read(name, Rights(allows=True), PODS)
    assert [name] == read(name, None, PODS)


SECRETS: Final[tuple[JSON, ...]] = (
    {"kubernetesResource": {"version": "v1", "resource": "secrets"}},
    {"kubernetesResource": {"group": "", "version": "v9", "resource": "secrets", "namespace": "a"}},
    {"apiCall": {"urlPath": "/api/v1/namespaces/a/secrets/b"}},
    {"apiCall": {"urlPath": "/api/v1/secrets?limit=1", "method": "GET"}},
)


@pytest.mark.parametrize("entry", SECRETS)
@pytest.mark.parametrize("rights", [None, Rights(allows=True)])
def test_an_entry_of_secrets_is_for_nobody(entry: JSON, rights: Rights | None) -> None:
    """Not even where there is no login."""
    with pytest.raises(HostError, match="a Secret is not shown"):
        read("global_entry", rights, entry)


@pytest.mark.parametrize(
    "entry",
    [
        {"apiCall": {"service": {"url": "https://x"}}},
        {"apiCall": {"urlPath": "/api/v1/pods", "service": {}}},
        {},
        {"x": 1},
    ],
)
def test_an_entry_of_an_unclear_source_is_for_no_viewer(entry: JSON) -> None:
    """A service, or what this server does not know."""
    with pytest.raises(HostError, match="the answers of services"):
        read("global_entry", Rights(allows=True), entry)
    assert ["global_entry"] == read("global_entry", None, entry)


class Registry(NoImages):
    """A registry that notes with which access it is read."""

    def __init__(self) -> None:
        self.seen: list[object] = []

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("_") or name in ("seen", "passes", "trust_root", "revocation", "public_key"):
            return super().__getattribute__(name)
        return lambda *given: self.seen.append(given) or {}


def test_images_are_read_without_credentials() -> None:
    """Those of a policy, of an object and of the server are not those of the viewer."""
    registry = Registry()
    images = ViewerImages(registry, lambda _: None)
    own = ImageAccess({"secrets": ["kyverno/token"]}, ("token",), "a")
    images.resolve([("x", own)])
    images.signatures([SignatureQuery("x", "sha256:0", SignatureForm.BUNDLE, own)])
    images.artifacts("x", "sha256:0", "t", own)
    images.artifact_content("x", None, own)  # type: ignore[arg-type]  # is passed on
    images.data("x", own)
    assert 5 == len(registry.seen)
    assert "token" not in repr(registry.seen)
    own_names = {name for name, _ in inspect.getmembers(ImageSource) if not name.startswith("_")}
    assert own_names == {name for name in vars(ViewerImages) if not name.startswith("_")}


def test_a_key_in_a_secret_is_not_read_for_a_viewer() -> None:
    """`k8s://` names a Secret; other keys are public."""
    asked: list[Access] = []
    images = ViewerImages(NoImages(), asked.append)
    for reference in ("k8s://a/b", "https://x.example.org/key"):
        with pytest.raises(HostError):
            images.public_key(reference)
    assert [True] == [each.is_to_secrets for each in asked]
