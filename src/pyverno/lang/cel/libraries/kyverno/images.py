"""Kyverno's image library: references taken apart as go-containerregistry does, with one name for each registry."""

from __future__ import annotations

from typing import ClassVar, Final

from pyverno.errors import EvaluationError
from pyverno.kube.imageref.hosts import is_docker_hub, normal_host
from pyverno.lang.cel.declarations import Library, function
from pyverno.lang.cel.faults import OperandError
from pyverno.lang.cel.types import opaque
from pyverno.lang.cel.work import instant, reading
from pyverno.lazyregex import regex
from pyverno.value import dataclass

__all__ = ["IMAGES", "Image", "parse_image"]

DEFAULT_REGISTRY: Final = "index.docker.io"
_REPOSITORY: Final = regex("[a-z0-9_./-]{2,255}")
_TAG: Final = regex("[A-Za-z0-9_.-]{1,128}")
_DIGEST: Final = regex("sha256:[0-9a-f]{64}")
_REGISTRY: Final = regex(r"(?:[A-Za-z0-9._~-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]*)?")


@dataclass(frozen=True, slots=True)
class Image:
    """A reference: equal to another when their texts are, tags and all."""

    cel_type: ClassVar[str] = "kyverno.image"
    text: str
    registry: str
    repository: str
    tag: str
    digest: str

    @property
    def json_text(self) -> str:
        """The reference as JSON holds it."""
        return self.text


def parse_image(text: str) -> Image:
    """Parse an image reference; raises EvaluationError for an invalid one.

    >>> parse_image("nginx").repository
    'library/nginx'
    """
    name, at, digest = text.partition("@")
    base, tag = _without_tag(name)
    if at:
        valid = _DIGEST.fullmatch(digest) is not None
        tag = ""
    else:
        valid = tag is None or _TAG.fullmatch(tag) is not None
        tag = "latest" if tag is None else tag
    head, slash, rest = base.partition("/")
    registry, repository = "", base
    if slash and ("." in head or ":" in head or head == "localhost"):
        registry, repository = head, rest
    if not valid or not _REPOSITORY.fullmatch(repository) or (registry and not _REGISTRY.fullmatch(registry)):
        raise OperandError("could not parse reference", f"could not parse reference: {text}")
    registry = normal_host(registry) if registry else ""  # guard: expressions see one name of a registry
    if not registry or is_docker_hub(registry):
        registry = DEFAULT_REGISTRY
    if registry == DEFAULT_REGISTRY and "/" not in repository:
        repository = f"library/{repository}"
    return Image(text, registry, repository, tag or "", digest)


def _without_tag(name: str) -> tuple[str, str | None]:
    base, colon, tag = name.rpartition(":")
    return (base, tag) if colon and "/" not in tag else (name, None)


@function("image", "(string) -> kyverno.image", work=reading(per_step=32))
def image(text: str) -> Image:
    """The reference that a text names; the old name of `parseImageReference`.

    CEL: image('nginx').registry() ⇒ 'index.docker.io'
    """
    return parse_image(text)


@function("parseImageReference", "(string) -> kyverno.image", work=reading(per_step=32))
def parse_image_reference(text: str) -> Image:
    """The reference that a text names.

    CEL: parseImageReference('ghcr.io/a/b:v1').tag() ⇒ 'v1'
    """
    return parse_image(text)


@function("isImage", "(string) -> bool", work=reading(per_step=32))
def is_image(text: str) -> bool:
    """Whether a text names an image.

    CEL: isImage('UPPER/x') ⇒ false
    """
    try:
        parse_image(text)
    except EvaluationError:
        return False
    return True


@function("registry", "kyverno.image.() -> string", work=instant)
def registry(value: Image) -> str:
    """The registry's host.

    CEL: image('ghcr.io/a/b').registry() ⇒ 'ghcr.io'
    """
    return value.registry


@function("repository", "kyverno.image.() -> string", work=instant)
def repository(value: Image) -> str:
    """The repository's path.

    CEL: image('nginx').repository() ⇒ 'library/nginx'
    """
    return value.repository


@function("identifier", "kyverno.image.() -> string", work=instant)
def identifier(value: Image) -> str:
    """The digest, or the tag.

    CEL: image('nginx').identifier() ⇒ 'latest'
    """
    return value.digest or value.tag


@function("tag", "kyverno.image.() -> string", work=instant)
def tag(value: Image) -> str:
    """The tag; empty beside a digest.

    CEL: image('nginx:1.25').tag() ⇒ '1.25'
    """
    return value.tag


@function("digest", "kyverno.image.() -> string", work=instant)
def digest(value: Image) -> str:
    """The digest, empty when there is none.

    CEL: image('nginx').digest() ⇒ ''
    """
    return value.digest


@function("containsDigest", "kyverno.image.() -> bool", work=instant)
def contains_digest(value: Image) -> bool:
    """Whether the reference has a digest.

    CEL: image('nginx').containsDigest() ⇒ false
    """
    return bool(value.digest)


IMAGES: Final = Library(
    "kyverno.image",
    (image, parse_image_reference, is_image, registry, repository, identifier, tag, digest, contains_digest),
    types=(opaque("kyverno.image"),),
    introduced="1.14",
    doc="Image references.",
)
