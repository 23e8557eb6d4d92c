"""Container image references, parsed and normalised.

The grammar is that of the distribution project; the default registry is put in front by Kyverno's own rule (no
`library/` is added). Hosts are in their normal form.
"""

from __future__ import annotations

from typing import Final

from pyverno.errors import ValueSyntaxError
from pyverno.kube.imageref.hosts import DOCKER_HUB, is_docker_hub, normal_host
from pyverno.lazyregex import regex
from pyverno.value import dataclass

# trust rows: image-reference

__all__ = ["ImageReference", "parse_reference"]

_MAX_NAME: Final = 255
_MAX_SHOWN: Final = 512
_MAX_REFERENCE: Final = 4096

_ALNUM: Final = "[a-z0-9]+"
_COMPONENT: Final = rf"{_ALNUM}(?:(?:\.|_|__|-+){_ALNUM})*"
_LABEL: Final = "(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_DOMAIN: Final = rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_PATH: Final = regex(rf"{_COMPONENT}(?:/{_COMPONENT})*")
_DOMAIN_ONLY: Final = regex(_DOMAIN)
_TAG: Final = regex(r"[A-Za-z0-9_][A-Za-z0-9_.\-]{0,127}")
_DIGEST: Final = regex(r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}")
_DIGEST_LENGTHS: Final = {"sha256": 64, "sha384": 96, "sha512": 128}
_LOWER_HEX: Final = regex("[0-9a-f]+")


@dataclass(frozen=True, slots=True)
class ImageReference:
    """A normalised reference: registry, path (repository), tag and digest; parts that are not there are empty.

    `default_registry` is what stands in front of a name without a registry.

    >>> reference = parse_reference("ghcr.io/kyverno/kyverno:v1")
    >>> reference.registry, reference.path, reference.name, reference.tag
    ('ghcr.io', 'kyverno/kyverno', 'kyverno', 'v1')
    """

    registry: str
    path: str
    tag: str = ""
    digest: str = ""
    default_registry: str = DOCKER_HUB

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]

    @property
    def repository(self) -> str:
        """Registry and path."""
        return f"{self.registry}/{self.path}" if self.registry else self.path

    @property
    def with_tag(self) -> str:
        """The reference with its tag whether or not it has a digest; ends in `:` when there is no tag."""
        return f"{self.repository}:{self.tag}"

    @property
    def full_registry(self) -> str:
        """The host of the registry, also where the default one is left out; `docker.io` for each name of Docker Hub."""
        registry = self.registry or self.default_registry.partition("/")[0]
        return DOCKER_HUB if is_docker_hub(registry) else registry

    @property
    def full_path(self) -> str:
        """The path in the registry, which is below `library` for official images of Docker Hub."""
        below = "" if self.registry else self.default_registry.partition("/")[2]
        path = f"{below}/{self.path}" if below else self.path
        return f"library/{path}" if self.full_registry == DOCKER_HUB and "/" not in path else path

    @property
    def normal_repository(self) -> str:
        """The repository in the normal form, which is the same for all texts that name it."""
        return f"{self.full_registry}/{self.full_path}"

    @property
    def normal(self) -> str:
        """The normal form, with the tag and the digest: equal if and only if two references name one image.

        >>> parse_reference("Index.Docker.IO/nginx").normal, parse_reference("nginx:latest").normal
        ('docker.io/library/nginx:latest', 'docker.io/library/nginx:latest')
        """
        tag = f":{self.tag}" if self.tag else ""
        return f"{self.normal_repository}{tag}@{self.digest}" if self.digest else f"{self.normal_repository}{tag}"

    def __str__(self) -> str:
        return f"{self.repository}@{self.digest}" if self.digest else self.with_tag


def parse_reference(text: str, default_registry: str = "docker.io", mutate_registry: bool = True) -> ImageReference:
    """Take a reference apart and normalise it.

    The default registry is put in front when the text has no `/`, or when its first part has neither `.` nor `:`, is
    not `localhost` and is all lower case; without `mutate_registry` it is left out again (the registry is empty). The
    tag `latest` is added when there is neither tag nor digest. Raises ValueSyntaxError ``bad image: …``.

    >>> str(parse_reference("nginx"))
    'docker.io/nginx:latest'
    >>> str(parse_reference("nginx", mutate_registry=False))
    'nginx:latest'
    """
    full = _with_registry(text, default_registry)
    try:
        registry, path, tag, digest = _parse(full)
    except ValueSyntaxError as error:
        raise ValueSyntaxError(
            f"bad image: {full[:_MAX_SHOWN]}, defaultRegistry: {default_registry}, "
            f"enableDefaultRegistryMutation: {'true' if mutate_registry else 'false'}: {error.message}"
        ) from None
    if not registry and full == text:
        registry, _, path = path.partition("/")  # a host with `_` is none of the grammar, and still where nodes look
    registry = normal_host(registry) if registry else ""
    if full != text and not mutate_registry:
        registry = ""
    return ImageReference(registry, path, tag or ("" if digest else "latest"), digest, _normal_start(default_registry))


def _normal_start(default_registry: str) -> str:
    host, slash, below = default_registry.partition("/")
    return f"{normal_host(host)}{slash}{below}"


def _with_registry(text: str, default_registry: str) -> str:
    first, slash, _ = text.partition("/")
    is_registry = slash and ("." in first or ":" in first or first == "localhost" or first.lower() != first)
    return text if is_registry else f"{default_registry}/{text}"


def _parse(text: str) -> tuple[str, str, str, str]:
    """Split a reference into domain, path, tag and digest; the texts of errors are distribution's."""
    if len(text) > _MAX_REFERENCE:
        raise ValueSyntaxError("invalid reference format")  # no registry has such a name; matching it would take long
    rest, at, digest = text.partition("@")
    head, colon, tag = rest.rpartition(":")
    if not colon or "/" in tag:
        head, colon, tag = rest, "", ""
    domain, slash, path = head.partition("/")
    if not (slash and _DOMAIN_ONLY.fullmatch(domain) and _PATH.fullmatch(path)):
        domain, path = "", head
    is_valid = (
        (bool(domain) or _PATH.fullmatch(path))
        and (not colon or _TAG.fullmatch(tag))
        and (not at or _DIGEST.fullmatch(digest))
    )
    if not is_valid:
        raise ValueSyntaxError(_problem(text))
    if len(path) > _MAX_NAME:
        raise ValueSyntaxError(f"repository name must not be more than {_MAX_NAME} characters")
    if digest:
        _check_digest(digest)
    return domain, path, tag, digest


def _problem(text: str) -> str:
    if not text:
        return "repository name must have at least one component"
    if text.lower() != text and _is_valid(text.lower()):
        return "repository name must be lowercase"
    return "invalid reference format"


def _is_valid(text: str) -> bool:
    try:
        _parse(text)
    except ValueSyntaxError as error:
        return error.message != "invalid reference format"
    return True


def _check_digest(digest: str) -> None:
    algorithm, _, value = digest.partition(":")
    length = _DIGEST_LENGTHS.get(algorithm)
    if length is None:
        raise ValueSyntaxError("unsupported digest algorithm")
    if len(value) != length:
        raise ValueSyntaxError("invalid checksum digest length")
    if not _LOWER_HEX.fullmatch(value):
        raise ValueSyntaxError("invalid checksum digest format")
