"""Images and their signatures, as a Host returns them to rules."""

from __future__ import annotations

import asyncio
import base64
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from itertools import pairwise
from typing import TypeVar

import pytest
from aiohttp import TCPConnector, web

from pyverno.engine.imagesource import ImageAccess, SignatureQuery
from pyverno.errors import HostError, NotFoundError
from pyverno.images.verification.stored import SignatureForm
from pyverno.kube.json import JSONObject
from pyverno.registry.client import RegistryClient
from pyverno.registry.documents import MAX_CONFIGURATION, MAX_VALUES
from pyverno.registry.images import RegistryImages, SecretCredentials
from pyverno.registry.storedreading import Allowance
from pyverno.registry.transport import RegistrySettings, Transport
from tests.authority.registry import BUNDLE, MANIFEST, Registry, digest_of
from tests.authority.signing import SigningServices

T = TypeVar("T")
SERVICES = SigningServices()
SIMPLE = "application/vnd.dev.cosign.simplesigning.v1+json"
DSSE = "application/vnd.dsse.envelope.v1+json"
DSSE = "application/vnd.dsse.envelope.v1+json"


def _run(
    registry: Registry,
    work: Callable[[RegistryImages], Awaitable[T]],
    secrets: Mapping[str, JSONObject] | None = None,
    *,
    is_everywhere: bool = False,
) -> T:
    async def read(namespace: str, name: str) -> JSONObject:
        found = (secrets or {}).get(f"{namespace}/{name}")
        if found is None:
            raise NotFoundError("secrets not found")
        return found

    async def run() -> T:
        async with registry:
            connector = registry.connector if is_everywhere else TCPConnector
            transport = Transport(RegistrySettings(5, allows_http=is_everywhere), connector)
            images = RegistryImages(RegistryClient(transport), SecretCredentials(read, "kyverno"))
            try:
                return await work(images)
            finally:
                await images.close()

    return asyncio.run(run())


def _secret(registry: Registry) -> JSONObject:
    auths = {registry.host: {"username": "user", "password": "word"}}
    data = base64.b64encode(json.dumps({"auths": auths}).encode()).decode()
    return {
        "metadata": {"name": "pull", "namespace": "team"},
        "type": "kubernetes.io/dockerconfigjson",
        "data": {".dockerconfigjson": data},
    }


def test_every_form_of_signature_is_found() -> None:
    """Sources are the layers of both tags, and the referrers of the image."""
    registry, signer = Registry(), SERVICES.keyed()
    digest = registry.push("team/app", "v1")
    tag = digest.replace(":", "-")
    registry.push_layers("team/app", f"{tag}.sig", [signer.sign_layer(digest)], SIMPLE)
    registry.push_layers("team/app", f"{tag}.att", [signer.attest_layer(digest, {}, "https://example.com/p")], DSSE)
    registry.attach("team/app", digest, json.dumps(signer.bundle(digest)).encode())

    async def work(images: RegistryImages) -> list[int]:
        place = f"{registry.host}/team/app"
        return [len(await images.signatures(place, digest, form, ImageAccess())) for form in SignatureForm]

    assert [1, 1, 1, 1, 0] == _run(registry, work)


def test_many_requests_for_one_image_make_one_fetch() -> None:
    """A hundred reviews of an uncached image read each document once."""
    registry, signer = Registry(), SERVICES.keyed()
    digest = registry.push("team/app", "v1")
    tag = digest.replace(":", "-")
    registry.push_layers("team/app", f"{tag}.sig", [signer.sign_layer(digest)], SIMPLE)
    registry.attach("team/app", digest, json.dumps(signer.bundle(digest)).encode())
    seen: Counter[str] = Counter()

    async def count(request: web.Request) -> web.StreamResponse | None:
        seen[request.path] += 1
        return None

    registry.fault = count

    async def review(images: RegistryImages) -> int:
        place = f"{registry.host}/team/app"
        found = await images.resolve(f"{place}:v1", ImageAccess())
        forms = (SignatureForm.SIGNATURE_TAG, SignatureForm.BUNDLE)
        return sum([len(await images.signatures(place, found.digest, form, ImageAccess())) for form in forms])

    async def work(images: RegistryImages) -> list[int]:
        return await asyncio.gather(*(review(images) for _ in range(100)))

    assert [2] * 100 == _run(registry, work)
    assert {1} == set(seen.values())


def test_no_signatures_is_empty_and_a_refusal_is_an_error() -> None:
    """An unreadable signature is never taken for a missing one."""
    registry = Registry()
    digest = registry.push("team/app", "v1")

    async def work(images: RegistryImages) -> list[str]:
        place, found = f"{registry.host}/team/app", []
        for status in (404, 401, 403, 500):

            async def fault(_request: web.Request, status: int = status) -> web.StreamResponse:
                return web.Response(status=status)

            registry.fault = fault
            try:
                stored = await images.signatures(place, digest, SignatureForm.SIGNATURE_TAG, ImageAccess())
                found.append(str(stored))
            except HostError as error:
                found.append(error.message.replace(registry.host, "HOST"))
        return found

    assert [
        "()",
        "the registry `HOST` refused access to `team/app` (no credential: 401)",
        "the registry `HOST` refused access to `team/app` (no credential: 403)",
        "the registry `HOST` answers 500 for `team/app`",
    ] == _run(registry, work)


def test_a_referrer_of_another_image_is_an_error() -> None:
    """The registry's list is not trusted: the subject in the manifest decides (CVE-2023-33959)."""
    registry, signer = Registry(supports_referrers=False), SERVICES.keyed()
    digest = registry.push("team/app", "v1")
    other = registry.push("team/app", "v2", layers=(b"other",))
    registry.attach("team/app", other, json.dumps(signer.bundle(other)).encode())
    registry.manifests["team/app", digest.replace(":", "-")] = registry.manifests["team/app", other.replace(":", "-")]

    async def work(images: RegistryImages) -> None:
        with pytest.raises(HostError, match="that it does not refer to"):
            await images.signatures(f"{registry.host}/team/app", digest, SignatureForm.BUNDLE, ImageAccess())

    _run(registry, work)


def test_more_than_a_hundred_signatures_are_an_error() -> None:
    """Users who may push signatures must not be able to prolong a review (CVE-2023-42814, CVE-2024-29903)."""
    registry, layer = Registry(), SERVICES.keyed().sign_layer("sha256:" + "0" * 64)
    digest = registry.push("team/app", "v1")
    registry.push_layers("team/app", f"{digest.replace(':', '-')}.sig", [layer] * 101, SIMPLE)

    async def work(images: RegistryImages) -> None:
        with pytest.raises(HostError, match="more than 100 signatures"):
            await images.signatures(f"{registry.host}/team/app", digest, SignatureForm.SIGNATURE_TAG, ImageAccess())

    _run(registry, work)


def test_more_than_a_hundred_attestations_are_an_error() -> None:
    """The limit covers layers; referrers have their own limit (CVE-2023-42815, CVE-2023-46737)."""
    registry, digest = Registry(), "sha256:" + "0" * 64
    layer = SERVICES.keyed().attest_layer(digest, {}, "https://example.com/scan")
    digest = registry.push("team/app", "v1")
    registry.push_layers("team/app", f"{digest.replace(':', '-')}.att", [layer] * 101, DSSE)

    async def work(images: RegistryImages) -> None:
        with pytest.raises(HostError, match="more than 100 signatures"):
            await images.signatures(f"{registry.host}/team/app", digest, SignatureForm.ATTESTATION_TAG, ImageAccess())

    _run(registry, work)


def _declare(registry: Registry, tag: str, *sizes: int) -> str:
    """Push an image, and a manifest that declares the sizes of its signatures; return the digest."""
    layer = SERVICES.keyed().sign_layer("sha256:" + "0" * 64)
    digest = registry.push("team/app", tag, layers=(tag.encode(),))
    described = {**registry.describe(SIMPLE, layer.blob), "annotations": layer.annotations}
    body = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": registry.describe("application/vnd.oci.image.config.v1+json", b"{}"),
        "layers": [{**described, "size": size} for size in sizes],
    }
    registry.put_manifest("team/app", f"{digest.replace(':', '-')}.sig", MANIFEST, body)
    return digest


def test_signatures_read_together_have_few_bytes() -> None:
    """Images of one Pod share 32 MiB by their declared sizes: a hundred blobs of 10 MiB would end the process."""
    registry, tenth = Registry(), 10 * 1024 * 1024
    digests = [_declare(registry, "v1", tenth), _declare(registry, "v2", tenth, tenth, tenth)]

    async def work(images: RegistryImages) -> list[str]:
        place, form = f"{registry.host}/team/app", SignatureForm.SIGNATURE_TAG
        queries = [SignatureQuery(place, digest, form, ImageAccess()) for digest in digests]
        alone = await images.signatures_each(queries[1:])
        together = await images.signatures_each(queries)
        return [each.message if isinstance(each, HostError) else "read" for each in (*alone, *together)]

    alone, *together = _run(registry, work)
    refused = "the signatures and attestations have more than 33554432 bytes"
    assert ("read", {"read", refused}) == (alone, set(together))


def test_a_signature_that_is_longer_than_declared_is_an_error() -> None:
    """No more is read than was reserved; a signature without a size reserves the largest one."""
    registry = Registry()
    short, unknown = _declare(registry, "v1", 1), _declare(registry, "v2", 0, 0, 0, 0)

    async def work(images: RegistryImages) -> None:
        place, form = f"{registry.host}/team/app", SignatureForm.SIGNATURE_TAG
        for digest, problem in ((short, "too much|more than 1"), (unknown, "more than 33554432 bytes")):
            with pytest.raises(HostError, match=problem):
                await images.signatures(place, digest, form, ImageAccess())

    _run(registry, work)


INDEX = "application/vnd.oci.image.index.v1+json"
COSIGN = "application/vnd.dev.cosign.artifact.sig.v1+json"
PURPOSES = {
    "bundles": (BUNDLE, lambda images, place, digest: images.signatures(place, digest, SignatureForm.BUNDLE, ACCESS)),
    "signatures of cosign": (
        COSIGN,
        lambda images, place, digest: images.signatures(place, digest, SignatureForm.SIGNATURE_REFERRER, ACCESS),
    ),
    "attestations of Notary": ("sbom", lambda images, place, digest: images.artifacts(place, digest, "sbom", ACCESS)),
}
ACCESS = ImageAccess()


def _refer(registry: Registry, artifact_type: str, padding: int, declared: int | None = None, count: int = 1) -> str:
    """Push an image to which manifests of a length refer, by a list that declares sizes; return its digest."""
    digest = registry.push("team/app", "v1")
    listed = []
    for number in range(count):
        blob = f"{number}".encode()
        body = {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": registry.describe(artifact_type, b"{}"),
            "layers": [registry.describe(SIMPLE, blob)],
            "subject": {"digest": digest},
            "annotations": {"padding": "x" * padding},
        }
        described = {"mediaType": MANIFEST, "artifactType": artifact_type, "size": declared or padding + 4096}
        listed.append({**described, "digest": registry.put_manifest("team/app", "", MANIFEST, body)})
    body = {"schemaVersion": 2, "mediaType": INDEX, "manifests": listed}
    registry.put_manifest("team/app", digest.replace(":", "-"), INDEX, body)
    return digest


@pytest.mark.parametrize("purpose", PURPOSES)
def test_the_manifests_of_referrers_count_as_read(purpose: str) -> None:
    """Fifty manifests of 4 MiB each would be 200 MiB: they share the 32 MiB of the signatures that they name."""
    artifact_type, read = PURPOSES[purpose]
    registry = Registry(supports_referrers=False)
    digest = _refer(registry, artifact_type, padding=1, declared=4 * 1024 * 1024, count=9)

    async def work(images: RegistryImages) -> str:
        with pytest.raises(HostError) as refused:
            await read(images, f"{registry.host}/team/app", digest)
        return refused.value.message

    assert "the signatures and attestations have more than 33554432 bytes" == _run(registry, work)


@pytest.mark.parametrize("purpose", PURPOSES)
def test_the_manifest_of_a_referrer_has_its_declared_size(purpose: str) -> None:
    """Otherwise a list that declares small manifests would count for less than is read."""
    artifact_type, read = PURPOSES[purpose]
    registry = Registry(supports_referrers=False)
    digest = _refer(registry, artifact_type, padding=1000, declared=600)

    async def work(images: RegistryImages) -> str:
        with pytest.raises(HostError) as refused:
            await read(images, f"{registry.host}/team/app", digest)
        return refused.value.message

    assert _run(registry, work).endswith("has more than the 600 bytes of its descriptor")


def test_lists_and_manifests_without_a_declared_size_count_as_read() -> None:
    """Tags and lists of referrers have no descriptor: what came is counted."""
    registry, allowance = Registry(), Allowance()
    digest = registry.push("team/app", "v1")
    registry.push_layers("team/app", f"{digest.replace(':', '-')}.sig", [], SIMPLE)

    async def work(images: RegistryImages) -> list[bool]:
        left = [allowance.left]
        for form in (SignatureForm.SIGNATURE_TAG, SignatureForm.BUNDLE):
            await images.signatures(f"{registry.host}/team/app", digest, form, ACCESS, allowance=allowance)
            left.append(allowance.left)
        return [one > other for one, other in pairwise(left)]

    assert [True, True] == _run(registry, work)


# -------------------------------------------------------------------------------------------------------- credentials


def test_a_resource_names_secrets_of_its_own_namespace() -> None:
    """The pull secret of a Pod is read in the Pod's namespace."""
    registry = Registry(users={"user": "word"})
    digest = registry.push("team/app", "v1")

    async def work(images: RegistryImages) -> str:
        access = ImageAccess(pull_secrets=("pull",), namespace="team")
        return (await images.resolve(f"{registry.host}/team/app:v1", access)).digest

    async def wrapped(images: RegistryImages) -> str:
        secrets["team/pull"] = _secret(registry)
        return await work(images)

    secrets: dict[str, JSONObject] = {}
    assert digest == _run(registry, wrapped, secrets)


def test_a_resource_cannot_name_the_secret_of_another_namespace() -> None:
    """A slash in the Pod's own list would read a Secret that its author may not read (I1)."""

    async def work(images: RegistryImages) -> str:
        access = ImageAccess(pull_secrets=("other/pull",), namespace="team")
        with pytest.raises(HostError) as caught:
            await images.resolve("registry.example.com/team/app:v1", access)
        return caught.value.message

    assert "the resource names the pull secret `other/pull`, which is no name" == _run(Registry(), work)


# --------------------------------------------------------------------------------------------------------- image data


def test_the_data_of_an_index_is_that_of_linux_on_amd64() -> None:
    """The digest is that of the index; manifest and configuration are those of the usual platform."""
    registry = Registry()
    arm = registry.push("team/app", "", {"architecture": "arm64"}, (b"a",))
    amd = registry.push("team/app", "", {"architecture": "amd64"}, (b"b",))
    listed = [
        {"mediaType": MANIFEST, "digest": digest, "size": 1, "platform": {"os": "linux", "architecture": name}}
        for digest, name in ((arm, "arm64"), (amd, "amd64"))
    ]
    kind = "application/vnd.oci.image.index.v1+json"
    index = registry.put_manifest("team/app", "v1", kind, {"schemaVersion": 2, "manifests": listed})

    async def work(images: RegistryImages) -> tuple[object, ...]:
        found = await images.data(f"{registry.host}/team/app:v1", ImageAccess())
        return found["resolvedImage"].removeprefix(registry.host), found["identifier"], found["configData"]

    assert (f"/team/app@{index}", "v1", {"architecture": "amd64"}) == _run(registry, work)


def test_an_image_without_a_configuration_has_no_data() -> None:
    """An empty configuration would satisfy a rule that forbids something in it."""
    registry = Registry()
    registry.put_manifest("team/app", "v1", MANIFEST, {"schemaVersion": 2, "layers": []})

    async def work(images: RegistryImages) -> str:
        with pytest.raises(HostError) as caught:
            await images.data(f"{registry.host}/team/app:v1", ImageAccess())
        return caught.value.message.replace(registry.host, "HOST")

    assert "image `HOST/team/app:v1` has no configuration" == _run(registry, work)


LIST_OF_VALUES = [0] * MAX_VALUES
"""Together with the list itself, these are more values than a document may have."""


def _large_configuration(registry: Registry) -> None:
    registry.push("team/app", "v1", {"history": "x" * MAX_CONFIGURATION})


def _many_values_in_the_configuration(registry: Registry) -> None:
    registry.push("team/app", "v1", LIST_OF_VALUES)


def _many_values_in_the_manifest(registry: Registry) -> None:
    registry.put_manifest("team/app", "v1", MANIFEST, {"layers": LIST_OF_VALUES})


def _many_values_in_the_index(registry: Registry) -> None:
    registry.put_manifest("team/app", "v1", INDEX, {"manifests": LIST_OF_VALUES})


@pytest.mark.parametrize(
    ("push", "expected"),
    [
        (_large_configuration, "the registry `HOST` answers with more than 2097152 bytes"),
        (
            _many_values_in_the_configuration,
            "the configuration of image `HOST/team/app:v1` has more than 200000 values",
        ),
        (_many_values_in_the_manifest, "the manifest DIGEST has more than 200000 values"),
        (_many_values_in_the_index, "the manifest DIGEST has more than 200000 values"),
    ],
)
def test_documents_of_an_image_are_small_before_they_are_parsed(
    push: Callable[[Registry], None], expected: str
) -> None:
    """They are parsed on the event loop: 14 MiB of empty lists stopped it for more than a second."""
    registry = Registry()
    push(registry)
    digest = digest_of(registry.manifests["team/app", "v1"][1])

    async def work(images: RegistryImages) -> str:
        with pytest.raises(HostError) as refused:
            await images.data(f"{registry.host}/team/app:v1", ACCESS)
        return refused.value.message.replace(registry.host, "HOST").replace(digest, "DIGEST")

    assert expected == _run(registry, work)


def test_image_data_of_docker_hub_has_the_names_of_its_index() -> None:
    """Policies compare these names: the registry, and `library` in repositories of official images."""
    registry = Registry()
    digest = registry.push("library/nginx", "latest")
    registry.push("team/app", "latest")

    async def work(images: RegistryImages) -> tuple[object, ...]:
        first = await images.data("Registry-1.Docker.IO:443/nginx", ImageAccess())
        assert first["resolvedImage"] == (await images.data("nginx", ImageAccess()))["resolvedImage"]
        second = await images.data("docker.io/team/app", ImageAccess())
        return first["registry"], first["repository"], first["resolvedImage"], second["registry"], second["repository"]

    expected = ("index.docker.io", "library/nginx", f"index.docker.io/library/nginx@{digest}")
    assert (*expected, "index.docker.io", "team/app") == _run(registry, work, is_everywhere=True)
