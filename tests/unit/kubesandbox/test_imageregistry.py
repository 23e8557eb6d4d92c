"""The image registry of the sandbox, as tools push to it and read from it."""

from __future__ import annotations

import asyncio
import json

from aiohttp import ClientSession

from kubesandbox.imageregistry import INDEX, MANIFEST, Registry, digest_of


def test_a_blob_is_pushed_in_parts_and_read_by_its_digest() -> None:
    """As docker and cosign push: begin, send parts, close with the digest."""

    async def work() -> tuple[object, ...]:
        async with Registry() as registry, ClientSession(f"http://{registry.host}") as client:
            began = await client.post("/v2/team/app/blobs/uploads/")
            sent = await client.patch(began.headers["Location"], data=b"first ")
            wrong = await client.put(f"{sent.headers['Location']}&digest={digest_of(b'')}", data=b"x")
            again = await client.post("/v2/team/app/blobs/uploads/")
            await client.patch(again.headers["Location"], data=b"first ")
            digest = digest_of(b"first second")
            closed = await client.put(f"{again.headers['Location']}&digest={digest}", data=b"second")
            read = await client.get(f"/v2/team/app/blobs/{digest}")
            ping = await client.get("/v2/")
            return ping.status, began.status, sent.status, wrong.status, closed.status, await read.read()

    assert asyncio.run(work()) == (200, 202, 202, 400, 201, b"first second")


def test_a_manifest_with_a_subject_is_listed_as_its_referrer() -> None:
    """The response to the push has `OCI-Subject`; a body that is no manifest is refused."""

    async def work() -> tuple[object, ...]:
        async with Registry() as registry, ClientSession(f"http://{registry.host}") as client:
            image = registry.push("team/app", "v1")
            config = registry.describe("application/vnd.example", b"{}")
            body = {"mediaType": MANIFEST, "config": config, "layers": [], "subject": {"digest": image}}
            raw = json.dumps(body).encode()
            kind = {"Content-Type": MANIFEST}
            pushed = await client.put(f"/v2/team/app/manifests/{digest_of(raw)}", data=raw, headers=kind)
            broken = await client.put("/v2/team/app/manifests/v2", data=b"[", headers=kind)
            listed = await client.get(f"/v2/team/app/referrers/{image}")
            found = await listed.json(content_type=INDEX)
            digests = [each["digest"] for each in found["manifests"]]
            return pushed.headers["OCI-Subject"] == image, digests == [digest_of(raw)], broken.status

    assert asyncio.run(work()) == (True, True, 400)


def test_a_registry_without_referrers_does_not_announce_them() -> None:
    """Clients that get the header leave the fallback tag away, by which alone a signature is found there."""

    async def work() -> bool:
        async with Registry(supports_referrers=False) as registry, ClientSession(f"http://{registry.host}") as client:
            config = registry.describe("application/vnd.example", b"{}")
            subject = {"digest": registry.push("team/app", "v1")}
            raw = json.dumps({"mediaType": MANIFEST, "config": config, "layers": [], "subject": subject}).encode()
            path, kind = f"/v2/team/app/manifests/{digest_of(raw)}", {"Content-Type": MANIFEST}
            return "OCI-Subject" in (await client.put(path, data=raw, headers=kind)).headers

    assert not asyncio.run(work())
