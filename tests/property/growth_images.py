"""Documents that carry or hold signatures, under the doubling law: manifests, envelopes, and attestors of policies."""

from __future__ import annotations

import base64
import gzip
import io
import tarfile
from collections.abc import Callable, Mapping
from typing import Any

from pyverno.images.manifests.compare import IgnoredFields, difference
from pyverno.images.manifests.signed import read_signed_manifest
from pyverno.images.verification.attestorsets import read_attestor_sets
from pyverno.images.verification.notary.cbor import encode_bytes, read_cbor
from pyverno.images.verification.notary.envelope import read_notary
from pyverno.kube.json import encode
from tests.property.growth import Call, Shape

__all__ = ["signed_documents"]


def signed_documents(
    call: Callable[..., Call], pod: Callable[..., dict[str, Any]]
) -> Mapping[str, Mapping[str, Shape]]:
    """Return the rows; `call` makes a call of a function with its arguments, `pod` an object of about a size."""
    ignored = (IgnoredFields(("spec.containers.*.image", "metadata.labels.l1*"), ({"kind": "P*"},)),)

    def message(content: Callable[[int], bytes]) -> Shape:
        def shape(size: int) -> Call:
            packed = base64.b64encode(gzip.compress(content(size), mtime=0)).decode()
            return call(read_signed_manifest, {"cosign.sigstore.dev/message": packed})

        return shape

    def archive(size: int) -> bytes:
        found = io.BytesIO()
        with tarfile.open(fileobj=found, mode="w") as opened:
            data = encode(pod(size)).encode()
            member = tarfile.TarInfo("pod.yaml")
            member.size = len(data)
            opened.addfile(member, io.BytesIO(data))
        return gzip.compress(found.getvalue(), mtime=0)

    def annotations(size: int) -> Call:
        found = {f"cosign.sigstore.dev/signature_{number}": "AA==" for number in range(size // 40)}
        text = base64.b64encode(gzip.compress(b"kind: A", mtime=0)).decode()
        return call(read_signed_manifest, {**found, "cosign.sigstore.dev/message": text})

    protected = base64.urlsafe_b64encode(b'{"alg":"ES256","cty":"a"}').decode().rstrip("=")
    jws = {
        "payload": lambda size: {"payload": "A" * size, "protected": protected, "signature": "AA", "header": {}},
        "header": lambda size: {"payload": "e30", "protected": "A" * size, "signature": "AA", "header": {}},
        "certificates": lambda size: {
            **{"payload": "e30", "protected": protected, "signature": "AA"},
            "header": {"x5c": ["AA=="] * (size // 8)},
        },
    }
    return {
        "images.manifests.compare.difference": {
            "same": lambda size: call(difference, pod(size // 2), pod(size // 2), ignored),
            "changed": lambda size: call(difference, pod(size // 2), pod(size // 2, name="c", tty=True), ignored),
            "more": lambda size: call(difference, pod(40), pod(size), ignored),
        },
        "images.manifests.signed.read_signed_manifest": {
            "one object": message(lambda size: encode(pod(size)).encode()),
            "many objects": message(lambda size: b"kind: A\n---\n" * (size // 12)),
            "an archive": message(archive),
            "many signatures": annotations,
        },
        "images.verification.notary.cbor.read_cbor": {
            "bytes": lambda size: call(read_cbor, encode_bytes(b"a" * size), "it"),
            "list": lambda size: call(read_cbor, b"\x9a" + (size // 8).to_bytes(4) + b"\x01" * (size // 8), "it"),
            "nested": lambda size: call(read_cbor, b"\x81" * size, "it"),
            "map": lambda size: call(
                read_cbor,
                b"\xb9"
                + min(size // 16, 65_000).to_bytes(2)
                + b"".join(b"\x19%b\x01" % n.to_bytes(2) for n in range(300, 300 + min(size // 16, 65_000))),
                "it",
            ),
        },
        "images.verification.notary.envelope.read_notary": {
            **{
                f"JWS: {name}": (
                    lambda size, make=make: call(read_notary, encode(make(size)).encode(), "application/jose+json")
                )
                for name, make in jws.items()
            },
            "COSE: payload": lambda size: call(
                read_notary, b"\xd2\x84\x41\xa0\xa0" + encode_bytes(b"a" * size) + b"\x40", "application/cose"
            ),
        },
        "images.verification.attestorsets.read_attestor_sets": {
            "sets": lambda size: call(
                read_attestor_sets,
                [{"entries": [{"keyless": {"issuer": "https://i", "subject": f"s{n}"}}]} for n in range(size // 40)],
                "it",
            ),
            "entries": lambda size: call(
                read_attestor_sets,
                [{"entries": [{"keyless": {"issuer": "https://i", "subject": f"s{n}"}} for n in range(size // 40)]}],
                "it",
            ),
            "a long text": lambda size: call(
                read_attestor_sets, [{"entries": [{"keyless": {"issuer": "https://i", "subject": "a" * size}}]}], "it"
            ),
        },
    }
