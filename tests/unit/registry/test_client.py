"""The registry client with registries that are correct, broken, slow or hostile."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest
from aiohttp import web

from pyverno.errors import HostError, NotFoundError
from pyverno.registry.client import RegistryClient, Repository, layers_of
from pyverno.registry.credentials import Credential
from pyverno.registry.transport import RegistryCall, RegistrySettings, RegistryUnauthorizedError, Transport
from tests.authority.registry import BUNDLE, INDEX, MANIFEST, Fault, Registry, digest_of
from tests.support.services import Service
from tests.support.webhookserver import make_certificate

T = TypeVar("T")
USER = Credential("user", "canary-password", source="Secret team/pull")
WRONG = Credential("user", "wrong", source="Secret team/old")


def _run(registry: Registry, work: Callable[[RegistryClient], Awaitable[T]], seconds: float = 60.0) -> T:
    async def run() -> T:
        async with registry:
            client = RegistryClient(Transport(RegistrySettings(seconds)))
            try:
                return await work(client)
            finally:
                await client.close()

    return asyncio.run(run())


def _repository(registry: Registry, *credentials: Credential) -> Repository:
    return Repository(registry.host, "team/app", credentials)


def _error(registry: Registry, work: Callable[[RegistryClient], Awaitable[object]], seconds: float = 60.0) -> str:
    with pytest.raises(HostError) as caught:
        _run(registry, work, seconds)
    return caught.value.message.replace(registry.host, "HOST")


# ---------------------------------------------------------------------------------------------------------- manifests


def test_a_tag_is_resolved_to_the_digest_of_the_bytes() -> None:
    """The digest is computed from the body, which is cached under it."""
    registry = Registry()
    digest = registry.push("team/app", "v1")

    async def work(client: RegistryClient) -> tuple[str, bool]:
        found = await client.manifest(_repository(registry), "v1")
        again = await client.manifest(_repository(registry), digest)
        return found.digest, again.body == found.body

    assert (digest, True) == _run(registry, work)
    assert 1 == registry.requests["manifests"]


def test_a_closed_client_reads_no_registry_again() -> None:
    """A review that outlives its server gets an error."""
    registry = Registry()
    registry.push("team/app", "v1")

    async def work(client: RegistryClient) -> None:
        await client.close()
        await client.manifest(_repository(registry), "v1")

    assert "the client of registries is closed" == _error(registry, work)
    assert not registry.requests


def test_a_tag_is_resolved_each_time() -> None:
    """The tag may have moved."""
    registry = Registry()
    first = registry.push("team/app", "v1")

    async def work(client: RegistryClient) -> list[str]:
        found = [(await client.manifest(_repository(registry), "v1")).digest]
        registry.push("team/app", "v1", layers=(b"other",))
        return [*found, (await client.manifest(_repository(registry), "v1")).digest]

    found = _run(registry, work)
    assert first == found[0] != found[1]


def test_parallel_reads_of_one_manifest_make_one_request() -> None:
    """A hundred requests for one manifest share one HTTP request."""
    registry = Registry()
    registry.push("team/app", "v1")

    async def work(client: RegistryClient) -> None:
        await asyncio.gather(*(client.manifest(_repository(registry), "v1") for _ in range(100)))

    _run(registry, work)
    assert 1 == registry.requests["manifests"]


def test_the_cache_is_separate_for_each_credential() -> None:
    """A caller without access to an image does not get it from the cache of a caller with access."""
    registry = Registry(users={"user": "canary-password"})
    digest = registry.push("team/app", "v1")

    async def work(client: RegistryClient) -> str:
        await client.manifest(_repository(registry, USER), digest)
        with pytest.raises(RegistryUnauthorizedError) as caught:
            await client.manifest(_repository(registry), digest)
        return caught.value.message.replace(registry.host, "HOST")

    assert "the registry `HOST` refused access to `team/app` (no credential: 401)" == _run(registry, work)


def test_the_type_of_a_manifest_is_cached_with_its_bytes() -> None:
    """A blob of the same bytes, such as a layer of a signature, leaves an index an index."""
    registry = Registry()
    child = {"mediaType": MANIFEST, "digest": registry.push("team/app", "v1"), "size": 1}
    index = registry.put_manifest("team/app", "all", INDEX, {"schemaVersion": 2, "manifests": [child]})
    registry.blobs[index] = registry.manifests["team/app", index][1]

    async def work(client: RegistryClient) -> list[str]:
        await client.blob(_repository(registry), index)
        return [(await client.manifest(_repository(registry), index)).media_type for _ in range(2)]

    assert [INDEX, INDEX] == _run(registry, work)


IMAGE_FIELDS = {"config": {"digest": "sha256:1"}, "layers": [{"digest": "sha256:2"}]}
INDEX_FIELDS = {"manifests": [{"digest": "sha256:3"}]}
AMBIGUOUS = {
    "an image that lists manifests": (MANIFEST, {**IMAGE_FIELDS, **INDEX_FIELDS}),
    "an index with a configuration": (INDEX, {**IMAGE_FIELDS, **INDEX_FIELDS}),
    "an index sent as an image": (MANIFEST, {"mediaType": INDEX}),
    "an image sent as an index": (INDEX, {"mediaType": MANIFEST}),
    "an index sent without its type": ("application/json", INDEX_FIELDS),
}


@pytest.mark.parametrize("case", AMBIGUOUS)
def test_a_manifest_that_is_image_and_index_is_an_error(case: str) -> None:
    """Its media type is not part of the digest, so that a registry could choose the meaning (CVE-2021-41190)."""
    media_type, body = AMBIGUOUS[case]
    registry = Registry()
    digest = registry.put_manifest("team/app", "v1", media_type, body)

    async def work(client: RegistryClient) -> object:
        return (await client.manifest(_repository(registry), "v1")).read()

    assert f"the manifest {digest} is ambiguous: its content does not fit `{media_type}`" == _error(registry, work)


def test_a_missing_manifest_is_not_found() -> None:
    """404 differs from other failures: a missing manifest means that an image has no signatures."""
    registry = Registry()

    async def work(client: RegistryClient) -> None:
        with pytest.raises(NotFoundError):
            await client.manifest(_repository(registry), "v2")

    _run(registry, work)


# ----------------------------------------------------------------------------------------------------------- hostile


async def _other_body(request: web.Request) -> web.StreamResponse | None:
    return web.Response(body=b"{}", content_type=MANIFEST) if "manifests" in request.path else None


async def _false_header(_request: web.Request) -> web.StreamResponse:
    return web.Response(body=b"{}", content_type=MANIFEST, headers={"Docker-Content-Digest": "sha256:" + "0" * 64})


async def _endless(request: web.Request) -> web.StreamResponse:
    answer = web.StreamResponse()
    await answer.prepare(request)
    for _ in range(1024):
        await answer.write(b" " * 65536)
    return answer


async def _encoded(_request: web.Request) -> web.StreamResponse:
    return web.Response(body=b"\x1f\x8b", headers={"Content-Encoding": "gzip"})


async def _silent(_request: web.Request) -> web.StreamResponse:
    await asyncio.sleep(60)
    raise AssertionError


async def _drip(request: web.Request) -> web.StreamResponse:
    reply = web.StreamResponse(headers={"Content-Type": "application/vnd.oci.image.manifest.v1+json"})
    await reply.prepare(request)
    while True:
        await reply.write(b" ")
        await asyncio.sleep(0.02)


async def _loop(request: web.Request) -> web.StreamResponse:
    return web.Response(status=307, headers={"Location": request.path})


async def _elsewhere_by_file(_request: web.Request) -> web.StreamResponse:
    return web.Response(status=307, headers={"Location": "file:///etc/passwd"})


async def _broken(_request: web.Request) -> web.StreamResponse:
    return web.Response(status=418)


HOSTILE = {
    "other body": (_other_body, "the registry `HOST` answers with another manifest than DIGEST"),
    "false header": (_false_header, "the registry `HOST` answers with another manifest than DIGEST"),
    "endless body": (_endless, "the registry `HOST` answers with more than 4194304 bytes"),
    "encoded body": (_encoded, "the registry `HOST` answers with an encoded body, which was not requested"),
    "redirect loop": (_loop, "the registry `HOST` redirects more than 4 times"),
    "redirect to a file": (_elsewhere_by_file, "the registry `HOST` redirects to another scheme"),
    "odd status": (_broken, "the registry `HOST` answers 418 for `team/app`"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_registry_that_lies_is_an_error(case: str) -> None:
    """Each false response is refused with its reason, and never used (CVE-2024-29902)."""
    fault, message = HOSTILE[case]
    registry = Registry(fault=fault)
    digest = registry.push("team/app", "v1")
    found = _error(registry, lambda client: client.manifest(_repository(registry), digest))
    assert message == found.replace(digest, "DIGEST")


def test_a_header_that_names_another_digest_of_a_tag_is_an_error() -> None:
    """The registry must not choose the digest that is trusted (CVE-2023-47630)."""
    registry = Registry(fault=_false_header)
    assert "the registry `HOST` names another digest than its answer has" == _error(
        registry, lambda client: client.manifest(_repository(registry), "v1")
    )


@pytest.mark.parametrize("fault", [_silent, _drip])
def test_a_silent_registry_ends_at_the_limit(fault: Fault) -> None:
    """The time limit of the call holds for a body that arrives byte by byte as well (CVE-2023-42816)."""
    registry = Registry(fault=fault)
    assert "the registry `HOST` did not answer within 0.2 seconds" == _error(
        registry, lambda client: client.manifest(_repository(registry), "v1"), seconds=0.2
    )


def test_a_blob_with_other_bytes_is_an_error() -> None:
    """The digest of a blob is verified."""
    registry = Registry()
    digest = digest_of(b"expected")
    registry.blobs[digest] = b"other"
    found = _error(registry, lambda client: client.blob(_repository(registry), digest))
    assert f"the registry `HOST` answers with another blob than {digest}" == found


def test_only_sha256_names_a_blob() -> None:
    """Other algorithms, and text that would change the path, never reach the registry (CVE-2024-3727)."""
    registry = Registry()
    found = _error(registry, lambda client: client.blob(_repository(registry), "sha256:../../secret"))
    assert "`sha256:../../secret` is no digest of the kind sha256" == found
    assert not registry.requests


# -------------------------------------------------------------------------------------------------------- credentials


@pytest.mark.parametrize("uses_tokens", [True, False])
def test_credentials_are_tried_in_order(uses_tokens: bool) -> None:
    """The first credential that the registry accepts is used, with tokens or with basic authentication."""
    registry = Registry(users={"user": "canary-password"}, uses_tokens=uses_tokens)
    digest = registry.push("team/app", "v1")

    async def work(client: RegistryClient) -> str:
        return (await client.manifest(_repository(registry, WRONG, USER), "v1")).digest

    assert digest == _run(registry, work)


def test_refused_credentials_are_named_by_their_source() -> None:
    """The message names the sources and never a secret."""
    registry = Registry(users={"user": "canary-password"})
    found = _error(registry, lambda client: client.manifest(_repository(registry, WRONG), "v1"))
    assert "the registry `HOST` refused access to `team/app` (Secret team/old: 401, no credential: 401)" == found
    assert "canary-password" not in repr(USER)


def _challenge(realm: str) -> Fault:
    async def fault(_request: web.Request) -> web.StreamResponse:
        return web.Response(status=401, headers={"WWW-Authenticate": f'Bearer realm="{realm}",service="test"'})

    return fault


@pytest.mark.parametrize(
    "realm", ["file:///etc/passwd", "/token", "", "http://user:word@127.0.0.1/token", "http://[::"]
)
def test_a_realm_that_is_no_address_gets_no_credential(realm: str) -> None:
    """The registry chooses the token server, so only a plain server URL is accepted (CVE-2026-33540)."""
    registry = Registry(fault=_challenge(realm))
    found = _error(registry, lambda client: client.manifest(_repository(registry, USER), "v1"))
    assert "the registry `HOST` names no usable realm for tokens" == found


def test_a_token_is_no_longer_than_a_header() -> None:
    """Tokens are cached by the thousand, and realms may belong to strangers."""
    registry = Registry()

    async def fault(request: web.Request) -> web.StreamResponse:
        if request.path == "/v2/token":
            return web.json_response({"token": "t" * 16_385})
        header = f'Bearer realm="http://{registry.host}/v2/token"'
        return web.Response(status=401, headers={"WWW-Authenticate": header})

    registry.fault = fault
    found = _error(registry, lambda client: client.manifest(_repository(registry), "v1"))
    assert "the registry `HOST` has a realm that answers with no token" == found


def test_a_registry_behind_https_cannot_fetch_tokens_over_plain_http() -> None:
    """The credential would cross the network in clear text (CVE-2026-33540)."""
    certificate = make_certificate()
    context = certificate.client_context()
    context.check_hostname = False

    async def run() -> tuple[str, int]:
        realm = Service({"/token": lambda: web.json_response({"token": "good"})})
        async with realm, Service(certificate=certificate) as server:
            header = {"WWW-Authenticate": f'Bearer realm="{realm.url("/token")}"'}
            server.answers["/v2/"] = lambda: web.Response(status=401, headers=header)
            connector = Registry(host=f"127.0.0.1:{server.port}").connector
            transport = Transport(RegistrySettings(5), lambda: connector(context))
            with pytest.raises(HostError) as caught:
                await transport.send(RegistryCall("registry.example.com", "team/app", "/v2/", (USER,)))
            await transport.close()
            return caught.value.message, len(realm.asked)

    message = "the registry `registry.example.com` demands a credential over plain HTTP"
    assert (message, 0) == asyncio.run(run())


def test_a_redirect_to_another_host_takes_no_credential_along() -> None:
    """Blobs are often stored elsewhere; the token stays with the registry.

    oras-go CVE-2026-50151, CVE-2026-48978, GHSA-vh4v.
    """
    registry = Registry(users={"user": "canary-password"})
    store = Registry()
    body = b"blob"
    digest = digest_of(body)
    store.blobs[digest] = body

    async def fault(request: web.Request) -> web.StreamResponse | None:
        if "blobs" not in request.path or request.headers.get("Authorization") != "Bearer good":
            return None
        return web.Response(status=307, headers={"Location": f"http://{store.host}{request.path}"})

    registry.fault = fault

    async def work(client: RegistryClient) -> bytes:
        async with store:
            return await client.blob(_repository(registry, USER), digest)

    assert body == _run(registry, work)
    assert [""] == [given for _, given in store.authorizations]


# ---------------------------------------------------------------------------------------------------------- referrers


@pytest.mark.parametrize("supports_referrers", [True, False])
def test_referrers_are_found_by_the_api_or_the_fallback_tag(supports_referrers: bool) -> None:
    """Registries without the API store an index under a tag."""
    registry = Registry(supports_referrers=supports_referrers)
    subject = registry.push("team/app", "v1")
    attached = registry.attach("team/app", subject, b"{}")
    registry.attach("team/app", subject, b"[]", "application/vnd.other")

    async def work(client: RegistryClient) -> list[str]:
        return [each.digest for each in (await client.referrers(_repository(registry), subject, BUNDLE)).listed]

    assert [attached] == _run(registry, work)


def test_an_image_without_referrers_has_none() -> None:
    """Without API and tag the list is empty, not an error."""
    registry = Registry(supports_referrers=False)
    subject = registry.push("team/app", "v1")

    async def work(client: RegistryClient) -> list[object]:
        return list((await client.referrers(_repository(registry), subject, BUNDLE)).listed)

    assert [] == _run(registry, work)


def test_pages_of_referrers_do_not_go_on_forever_or_elsewhere() -> None:
    """An endless list, or one that continues on another host, is an error.

    CVE-2023-42813, CVE-2023-33958, CVE-2023-2253.
    """
    messages = []
    for link in ("</v2/team/app/referrers/x>; rel=next", "<https://evil.example.com/v2/>; rel=next"):

        async def fault(_request: web.Request, link: str = link) -> web.StreamResponse:
            body = json.dumps({"manifests": []}).encode()
            return web.Response(body=body, content_type=INDEX, headers={"Link": link})

        registry = Registry(fault=fault)
        messages.append(_error(registry, lambda client, at=registry: client.referrers(_repository(at), "sha256:0")))  # type: ignore[misc]
    assert [
        "the list of referrers of sha256:0 has more than 10 pages",
        "the registry `HOST` continues its list elsewhere",
    ] == messages


def test_the_pages_of_referrers_have_few_bytes_together() -> None:
    """Ten pages of 4 MiB each would be 40 MiB for one image."""

    async def fault(_request: web.Request) -> web.StreamResponse:
        body = b'{"manifests": [], "padding": "' + b"x" * 3_000_000 + b'"}'
        return web.Response(body=body, content_type=INDEX, headers={"Link": "</v2/team/app/referrers/x>; rel=next"})

    registry = Registry(fault=fault)
    found = _error(registry, lambda client: client.referrers(_repository(registry), "sha256:0"))
    assert "the list of referrers of sha256:0 has more than 4194304 bytes" == found


def test_too_many_referrers_are_an_error() -> None:
    """The limit is fifty of one type (CVE-2023-33957)."""
    registry = Registry()
    subject = registry.push("team/app", "v1")
    for number in range(51):
        registry.attach("team/app", subject, str(number).encode())
    found = _error(registry, lambda client: client.referrers(_repository(registry), subject, BUNDLE))
    assert "the image has more than 50 referrers of this type" == found


def test_layers_without_a_digest_are_an_error() -> None:
    """A manifest with unverifiable layers is not read further."""
    with pytest.raises(HostError, match="without a digest"):
        layers_of({"layers": [{"mediaType": "text", "digest": "md5:0"}]})


def test_many_lists_of_referrers_are_one_request() -> None:
    """Lists change, so they are not cached; concurrent requests for one share a fetch."""
    registry = Registry()
    digest = registry.push("team/app", "v1")
    registry.attach("team/app", digest, b"{}")

    async def work(client: RegistryClient) -> set[int]:
        asking = [client.referrers(_repository(registry), digest, BUNDLE) for _ in range(100)]
        return {len(each.listed) for each in await asyncio.gather(*asking)}

    assert {1} == _run(registry, work)
    assert 1 == registry.requests["referrers"]


def test_the_deadline_of_one_caller_does_not_end_the_request_of_another() -> None:
    """A shared request continues for the caller with more time."""
    released = asyncio.Event()

    async def hold(_request: web.Request) -> web.StreamResponse | None:
        await released.wait()
        return None

    registry = Registry(fault=hold)
    digest = registry.push("team/app", "v1")

    async def work(client: RegistryClient) -> tuple[str, str]:
        first = asyncio.ensure_future(client.manifest(_repository(registry), "v1", time.monotonic()))
        second = asyncio.ensure_future(client.manifest(_repository(registry), "v1", time.monotonic() + 60))
        with pytest.raises(HostError) as caught:
            await first
        released.set()
        return caught.value.message.replace(registry.host, "HOST"), (await second).digest

    assert ("the registry `HOST` did not answer before the deadline", digest) == _run(registry, work)
