"""The images that the corpus names, with their content and signers.

A signer is a key or a certificate of the corpus, or an identity; the keys, certificates and digests of the corpus are
replaced by ours, identities stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

__all__ = ["CERTIFICATES", "CONTENT", "IMAGES", "PUBLIC_KEYS", "Attested", "Image", "Keyless"]

CONTENT: Final = "content"
"""Names images that hold something of the real ones, as `Image.replaced` says it."""

PUBLIC_KEYS: Final[Mapping[str, str]] = {
    "test-verify-image": (
        "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE8nXRh950IZbRj8Ra/N9sbqOPZrfM"
        "5/KAQN0/KjHcorm/J5yctVd7iEcnessRQjU917hmKO6JWVGHpDguIyakZA=="
    ),
    "cosign-oci11": (
        "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEoKYkkX32oSx61B4iwKXa6llAF2dB"
        "IoL3R/9n1SJ7s00Nfkk3z4/Ar6q8el/guUmXi8akEJMxvHnvphorVUz8vQ=="
    ),
    "test-verify-image-rollback": (
        "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEfnYaFSrs2pLp4ShcWBgMLJM6Gki/"
        "1tC5ZWN2IuJTe2RbyVrDEn1qLBXNzGKhIXbsUyO5+BuIfgMdek1pDYFZGQ=="
    ),
}
"""Public keys of the corpus, which are replaced, by our names of them."""

CERTIFICATES: Final[Mapping[str, str]] = {
    "notary-2023": "MIIDTTCCAjWgAwIBAgIJAPI+zAzn4s0xMA0GCSqGSIb3DQEBCwUAMEwxCzAJBgNV",
    "notary-2024": "MIIDmDCCAoCgAwIBAgIUCntgF4FftePAhEa6nZTsu/NMT3cwDQYJKoZIhvcNAQEL",
}
"""First lines of the certificates of the corpus that are replaced, by our names of them."""


@dataclass(frozen=True, slots=True)
class Keyless:
    """An identity as an authority certifies it."""

    subject: str
    issuer: str = "https://token.actions.githubusercontent.com"


@dataclass(frozen=True, slots=True)
class Attested:
    """An attestation: its type, its predicate, and the signer as an identity or the name of a certificate."""

    type: str
    predicate: Any
    signer: Keyless | str


@dataclass(frozen=True, slots=True)
class Image:
    """An image of a repository: tags, the digest in the corpus, content, and signatures.

    `keys` and `certificates` name signers of the corpus, `identities` are those of keyless ones. With `is_bundle`
    signatures are Sigstore bundles with a time stamp, with `is_referrer` referrers instead of a tag. `layer` is the
    size that the manifest states for its layer. `replaced` lists the differences from the real image.
    """

    repository: str
    tags: tuple[str, ...] = ("latest",)
    digest: str = ""
    config: Mapping[str, Any] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    layer: int = 0
    has_index: bool = False
    keys: tuple[str, ...] = ()
    identities: tuple[Keyless, ...] = ()
    certificates: tuple[str, ...] = ()
    attestations: tuple[Attested, ...] = ()
    is_bundle: bool = False
    is_referrer: bool = False
    replaced: str = ""


_GENERATOR: Final = (
    "https://github.com/slsa-framework/slsa-github-generator/.github/workflows/"
    "generator_container_slsa3.yml@refs/heads/main"
)
_ZULU: Final = "https://github.com/chipzoller/zulu/.github/workflows"
_DEMO: Final = (
    "https://github.com/nirmata/github-signing-demo/.github/workflows/build-attested-image.yaml@refs/heads/main"
)
_SBOM: Final = {
    "bomFormat": "CycloneDX",
    "metadata": {"timestamp": "2023-05-22T21:15:18Z"},
    "components": [{"name": "app", "licenses": [{"expression": "GPL-3.0"}]}],
}
_SCAN: Final = {"source": {"type": "image"}, "descriptor": {"timestamp": "2023-05-22T21:14:18Z"}}
_FOUND: Final = {"Vulnerabilities": [{"VulnerabilityID": "CVE-2023-0001"}, {"VulnerabilityID": "CVE-2023-0002"}]}
_VEX: Final = {"vulnerabilities": [{"id": "CVE-2023-0001"}, {"id": "CVE-2023-0002"}]}
_MORE: Final = {"Vulnerabilities": [*_FOUND["Vulnerabilities"], {"VulnerabilityID": "CVE-2023-0003"}]}
_TEST: Final = "kyverno/test-verify-image"
_ROLLED: Final = "kyverno/test-verify-image-rollback"
_BUILD_INFO: Final = "eyJzb3VyY2VzIjpbeyJyZWYiOiJkb2NrZXIuaW8vbGlicmFyeS9nb2xhbmcifV19"

IMAGES: Final = (
    Image(_TEST, ("unsigned", "latest")),
    Image(
        _TEST,
        ("signed",),
        keys=("test-verify-image",),
        certificates=("notary-2023", "notary-2024"),
        attestations=(
            Attested("sbom/cyclone-dx", _SBOM, "notary-2023"),
            Attested("vulnerability-scan", _SCAN, "notary-2023"),
            Attested("trivy/vulnerability", _FOUND, "notary-2024"),
            Attested("trivy/vulnerability-fail-test", _MORE, "notary-2024"),
            Attested("vex/cyclone-dx", _VEX, "notary-2024"),
        ),
        replaced="the signed image, with a bill of materials and scans of ours",
    ),
    Image(_TEST, ("signed-keyless",), "sha256:445a99db22e9add9bfb15ddb1980861a329e5dff5c88d7eec9cbf08b6b2f4eb1"),
    Image(_TEST, ("cosign-oci11",), keys=("cosign-oci11",), is_referrer=True),
    Image(
        _ROLLED,
        ("signed-1",),
        "sha256:e0cc6dba04bee00badd8b13495d4411060b5563a9499fbc20e46316328efad30",
        keys=("test-verify-image-rollback",),
    ),
    Image(
        _ROLLED,
        ("signed-2",),
        "sha256:0fc1f3b764be56f7c881a69cbd553ae25a2b5523c6901fbacb8270307c29d0c4",
        keys=("test-verify-image-rollback",),
    ),
    Image(
        "kyverno/zulu",
        ("latest", "v0.0.14"),
        identities=(Keyless(f"{_ZULU}/slsa-generic-keyless.yaml@refs/tags/v0.0.14"),),
        attestations=(
            Attested("https://slsa.dev/provenance/v0.2", {"builder": {"id": _GENERATOR}}, Keyless(_GENERATOR)),
            Attested(
                "cosign.sigstore.dev/attestation/vuln/v1",
                {"scanner": {"uri": "trivy"}},
                Keyless(f"{_ZULU}/vulnerability-scan.yaml@refs/heads/main"),
            ),
        ),
        replaced="the authority that certifies the same identities",
    ),
    Image(
        "nirmata/github-signing-demo",
        digest="sha256:072be10d1892bbf31e3c273ea5b2be9d7e5839c5a84f1daf5b4d90e766dd9343",
        identities=(Keyless(_DEMO),),
        is_bundle=True,
        replaced="the authority that certifies the same identity; a signature where the image has an attestation",
    ),
    Image("docker/library/nginx", ("latest", "1.21")),
    Image("docker/library/busybox", ("1.35",)),
    Image("docker/library/ubuntu", ("bionic",)),
    Image("kyverno/test-busybox", ("1.28", "1.35")),
    Image("library/busybox", ("latest", "1.35")),
    Image("library/nginx", ("latest",)),
    Image("library/solr", config={"User": "8983"}),
    Image("library/solr", ("6",), has_index=True, config={"User": "8983"}),
    Image("clover/volume", ("passbolt",), config={"Volumes": {"/data": {}}}),
    Image(
        "nvidia/cuda",
        ("12.2.0-devel-ubi8",),
        config={"Env": ["NVIDIA_VISIBLE_DEVICES=all"]},
        layer=4 * 2**30,
    ),
    Image(
        "kyverno/test-nginx",
        digest="sha256:eca6768a39363decf0a4606a282e222552576fec380f555b65560983f7305cf7",
        config={"Labels": {"maintainer": "NGINX Docker Maintainers <docker-maint@nginx.com>"}},
    ),
    Image("kyverno/kyverno", ("latest",)),
    Image(
        "kyverno/kyverno",
        ("v1.7.3",),
        has_index=True,
        extra={"moby.buildkit.buildinfo.v1": _BUILD_INFO},
    ),
    Image(
        "kyverno/kyverno",
        ("v1.8.0",),
        annotations={"org.opencontainers.image.base.name": "distroless.dev/static:latest"},
    ),
    Image(
        "kyverno/kyverno",
        ("v1.9.0",),
        annotations={"org.opencontainers.image.base.name": "cgr.dev/chainguard/static:latest"},
    ),
    Image("stefanprodan/podinfo", ("6.3.3", "6.3.4", "6.3.5")),
    Image("jimbugwadia/demo-java-tomcat", ("v0.0.15",)),
)
"""The images, whatever the registry: no two registries of the corpus have a repository of the same name."""
