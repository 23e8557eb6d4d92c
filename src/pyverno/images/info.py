"""An image as policies see it: the parts of its reference, and its path in the resource."""

from __future__ import annotations

from pyverno.errors import ValueSyntaxError
from pyverno.kube.imageref.reference import ImageReference, parse_reference
from pyverno.kube.json import JSONObject
from pyverno.value import dataclass, replace

__all__ = ["ImageInfo", "parse_image", "parse_image_at"]


@dataclass(frozen=True, slots=True)
class ImageInfo:
    """A normalised image reference; missing parts are empty texts.

    `reference` shows the digest rather than the tag when both exist, `reference_with_tag` always the tag. `parsed` is
    what selectors and caches look at. `pointer` is the JSON pointer of the image field as Kyverno writes it, `steps`
    lead to the field. `pull_secrets` are the names of the secrets listed beside or above it.
    """

    registry: str
    path: str
    name: str
    tag: str
    digest: str
    reference: str
    reference_with_tag: str
    parsed: ImageReference
    pointer: str = ""
    steps: tuple[str, ...] = ()
    pull_secrets: tuple[str, ...] = ()

    def at(self, steps: tuple[str, ...], pull_secrets: tuple[str, ...] = ()) -> ImageInfo:
        """Return the same image at another field of a resource."""
        return replace(self, pointer=f"/{'/'.join(steps)}", steps=steps, pull_secrets=pull_secrets)

    def to_entry(self) -> JSONObject:
        """Return the image as it is in the variable `images`: empty parts are left out.

        >>> parse_image("nginx").at(("spec", "image")).to_entry()["jsonPointer"]
        '/spec/image'
        """
        required = {"name": self.name, "path": self.path, "jsonPointer": self.pointer}
        optional = {
            "registry": self.registry,
            "tag": self.tag,
            "digest": self.digest,
            "reference": self.reference,
            "referenceWithTag": self.reference_with_tag,
        }
        return required | {name: value for name, value in optional.items() if value}

    def to_variable(self) -> JSONObject:
        """Return the image as the variable `image` of image verification: all parts, no place.

        >>> parse_image("nginx").to_variable()["digest"]
        ''
        """
        return {
            "registry": self.registry,
            "path": self.path,
            "name": self.name,
            "tag": self.tag,
            "digest": self.digest,
            "reference": self.reference,
            "referenceWithTag": self.reference_with_tag,
        }


def parse_image(text: str, *, default_registry: str = "docker.io", mutate_registry: bool = True) -> ImageInfo:
    """Parse a reference; raises ValueSyntaxError ``bad image: …``.

    >>> parse_image("nginx").reference
    'docker.io/nginx:latest'
    """
    parsed = parse_reference(text, default_registry, mutate_registry)
    registry, path = parsed.registry, parsed.path
    first, slash, rest = path.partition("/")
    if slash and not registry and "_" in first:
        # Kyverno: a host with an underscore is no domain of the grammar, but meant as one
        registry, path = first, rest
    return ImageInfo(registry, path, parsed.name, parsed.tag, parsed.digest, str(parsed), parsed.with_tag, parsed)


def parse_image_at(
    place: str, text: str, *, default_registry: str = "docker.io", mutate_registry: bool = True
) -> ImageInfo:
    """Parse a reference that is at some place; raises ValueSyntaxError, which names the place and not the text.

    >>> parse_image_at("/spec/image", "nginx").reference
    'docker.io/nginx:latest'
    """
    try:
        return parse_image(text, default_registry=default_registry, mutate_registry=mutate_registry)
    except ValueSyntaxError as error:
        # Kyverno quotes the text; extractors and expressions read any field, and errors are in reports
        reason = error.message.rpartition(": ")[2]
        raise ValueSyntaxError(f"invalid image at `{place}` ({reason})") from None
