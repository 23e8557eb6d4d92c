"""The host of rules in a cluster: calls from a worker thread become requests, or use data in memory."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from aiohttp import web

from kubesandbox.sandbox import Sandbox, Settings
from pyverno.cluster.access import load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.cluster.egress import Egress, EgressSettings
from pyverno.cluster.egressrules import EgressRules
from pyverno.cluster.host import ClusterHost
from pyverno.cluster.informer import Informer
from pyverno.engine.host import HttpCall
from pyverno.errors import HostError, HostUnavailableError, NotFoundError
from pyverno.kube.apipath import parse_api_path
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.kinds import BUILTIN_KINDS
from pyverno.offline.system import System
from tests.support.services import Service

CONFIG_MAPS = GVR("", "v1", "configmaps")
CACHED = "cache.kyverno.io/enabled"


class _Entries:
    """A global context with one entry."""

    def get(self, name: str) -> JSON:
        return {"entry": name}

    def is_cached(self, name: str) -> bool:
        return name == "near"


def _config_map(name: str, **labels: str) -> JSONObject:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels}, "data": {"a": "1"}}


def ask(questions: Callable[[ClusterHost, Service], None], *, is_bare: bool = False) -> Service:
    """Call a host in a worker thread; its sandbox has two ConfigMaps, one cached, and there is a service."""
    service = Service({"/gone": lambda: web.Response(status=410, text="secret")})

    async def run() -> None:
        sandbox = Sandbox(Settings(controllers=False))
        await sandbox.start()
        egress = Egress(EgressSettings(EgressRules.read(()), seconds=60))
        try:
            async with Client(load_kubeconfig(sandbox.kubeconfig), qps=0) as client, service:
                await client.create(CONFIG_MAPS, _config_map("cached", **{CACHED: "true"}), "default")
                await client.create(CONFIG_MAPS, _config_map("other"), "default")
                cache = Informer(client, CONFIG_MAPS, selector=CACHED)
                following = asyncio.create_task(cache.run())
                await cache.synced.wait()
                parts: dict[str, Any] = {"egress": egress, "global_entries": _Entries(), "config_maps": cache}
                host = ClusterHost(
                    client, asyncio.get_running_loop(), lambda: BUILTIN_KINDS, System(), **({} if is_bare else parts)
                )
                await asyncio.to_thread(questions, host, service)
                following.cancel()
                await asyncio.gather(following, return_exceptions=True)
                await egress.close()
        finally:
            await sandbox.stop()

    asyncio.run(run())
    return service


def test_a_cached_config_map_is_in_memory_and_any_other_one_is_requested() -> None:
    """The cache label selects; other ConfigMaps are read from the API server, and missing ones raise NotFoundError."""

    def questions(host: ClusterHost, service: Service) -> None:
        at_hand = host.cached_config_map("default", "cached")
        assert at_hand is not None
        assert at_hand == host.config_map("default", "cached")
        assert None is host.cached_config_map("default", "other")
        assert {"a": "1"} == host.config_map("default", "other")["data"]
        with pytest.raises(NotFoundError, match='configmaps "none" not found'):
            host.config_map("default", "none")

    ask(questions)


class _Document(dict[str, Any]):
    """A document of a review, whose deletion can be observed."""


def _fails(host: ClusterHost, name: str) -> weakref.ref[_Document]:
    document = _Document(a=1)
    with suppress(HostError):
        host.config_map("default", name)
    return weakref.ref(document)


def test_an_error_keeps_no_reference_to_its_review() -> None:
    """The stored exception of a failed request refers to no frame of the caller."""

    def questions(host: ClusterHost, service: Service) -> None:
        gc.disable()
        try:
            assert [None, None] == [_fails(host, name)() for name in ("none", "not a name")]
        finally:
            gc.enable()

    ask(questions)


def test_calls_of_services_go_through_the_egress() -> None:
    """A POST without data sends an empty object for context entries, and the given data for expressions."""

    def questions(host: ClusterHost, service: Service) -> None:
        assert {"ok": True} == host.http_call(HttpCall("POST", service.url("/a")))
        assert (200, b'{"ok": true}') == host.http_exchange(HttpCall("POST", service.url("/b")))
        assert (410, b"secret") == host.http_exchange(HttpCall("GET", service.url("/gone")))
        with pytest.raises(HostError, match=r"^HTTP 410$"):
            host.http_call(HttpCall("GET", service.url("/gone")))
        with pytest.raises(HostError, match="only http and https are called"):
            host.http_exchange(HttpCall("GET", "file:///etc/passwd"))

    assert [b"{}", b"null"] == [each.body for each in ask(questions).asked if each.method == "POST"]


def test_objects_are_read_by_kind_and_by_path() -> None:
    """Selectors apply; paths are passed unchanged; an unserved kind is an error, not an empty list."""

    def questions(host: ClusterHost, service: Service) -> None:
        selected = host.list_objects("v1", "ConfigMap", "default", {"matchLabels": {CACHED: "true"}})
        assert ["cached"] == [each["metadata"]["name"] for each in selected]
        everything = host.list_objects("v1", "ConfigMap", "default", None)
        assert {"cached", "other"} <= {each["metadata"]["name"] for each in everything}
        assert None is host.get_object("v1", "ConfigMap", "default", "none")
        path = parse_api_path("/api/v1/namespaces/default/configmaps/other")
        assert "other" == host.api_call(path, method="GET", body=None)["metadata"]["name"]
        with pytest.raises(HostError, match="the cluster does not serve Thing"):
            host.get_object("example.com/v1", "Thing", "default", "a")

    ask(questions)


def test_entries_come_from_the_global_context() -> None:
    """The host reports as cached what the global context has cached."""

    def questions(host: ClusterHost, service: Service) -> None:
        assert {"entry": "near"} == host.global_entry("near")
        assert (True, False) == (host.is_entry_cached("near"), host.is_entry_cached("far"))

    ask(questions)


def test_a_host_without_egress_and_global_context_has_neither() -> None:
    """Without egress and global context both are unavailable, and no ConfigMap is cached."""

    def questions(host: ClusterHost, service: Service) -> None:
        for admission_request in (
            lambda: host.http_call(HttpCall("GET", service.url())),
            lambda: host.http_exchange(HttpCall("GET", service.url())),
            lambda: host.global_entry("near"),
        ):
            with pytest.raises(HostUnavailableError):
                admission_request()
        assert None is host.cached_config_map("default", "cached")
        assert not host.allows_http_in_namespaces

    assert [] == ask(questions, is_bare=True).asked


class _Notes:
    """Records every read; has one object in memory."""

    def __init__(self) -> None:
        self.read: list[tuple[str, str, str, bool]] = []
        self.listed: list[tuple[str, str, JSON]] = []
        self.failures = 0

    def at_hand(self, gvr: GVR, namespace: str, name: str) -> JSONObject | None:
        return {"metadata": {"name": name}, "data": {}} if name == "known" else None

    def note_object(self, gvr: GVR, namespace: str, name: str, found: JSONObject | None) -> None:
        self.read.append((gvr.resource, namespace, name, found is not None))

    def note_list(self, gvr: GVR, namespace: str, selector: JSONObject | None) -> None:
        self.listed.append((gvr.resource, namespace, selector))

    def note_failure(self) -> None:
        self.failures += 1


def test_an_evaluation_can_have_its_reads_noted() -> None:
    """Reads by kind or by path are recorded, also of missing objects; objects in memory are not requested."""

    def questions(host: ClusterHost, _service: Service) -> None:
        notes = _Notes()
        noting = host.noting(notes)
        assert {} == noting.get_object("v1", "ConfigMap", "default", "known")["data"]  # type: ignore[index]
        assert noting.get_object("v1", "ConfigMap", "default", "none") is None
        noting.api_call(parse_api_path("/api/v1/namespaces/default/configmaps/other"), method="GET", body=None)
        with pytest.raises(NotFoundError):
            noting.api_call(parse_api_path("/api/v1/namespaces/absent"), method="GET", body=None)
        noting.list_objects("v1", "ConfigMap", "default", {"matchLabels": {"a": "b"}})
        host.get_object("v1", "ConfigMap", "default", "other")
        assert 0 == notes.failures
        with pytest.raises(HostError):
            noting.api_call(parse_api_path("/api/v1/namespaces/default/configmaps"), method="PUT", body={})
        assert 1 == notes.failures
        assert [
            ("configmaps", "default", "known", True),
            ("configmaps", "default", "none", False),
            ("configmaps", "default", "other", True),
            ("namespaces", "", "absent", False),
        ] == notes.read
        assert [("configmaps", "default", {"matchLabels": {"a": "b"}})] == notes.listed

    ask(questions)
