"""Credentials for registries, out of docker configurations and Kubernetes pull secrets.

A key of a configuration names a registry, with a path or a wildcard per label of the host; the longest that fits an
image comes first. This module must never read a file, run a program or ask a service.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from pyverno.errors import DocumentError, ValueSyntaxError
from pyverno.kube.imageref.hosts import registry_name, split_port
from pyverno.kube.json import JSON, JSONObject, decode
from pyverno.kube.wildcard import match
from pyverno.value import dataclass

__all__ = ["Credential", "CredentialSource", "credentials_for", "read_docker_config", "read_pull_secret"]

_MAX_BYTES: Final = 1_048_576
_TYPES: Final = {
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson", True),
    "kubernetes.io/dockercfg": (".dockercfg", False),
}


@dataclass(frozen=True, slots=True)
class Credential:
    """A user name with a password, or an identity token or registry token; texts that are not set are empty.

    `source` names its origin, for messages; it never holds a secret.
    """

    username: str = ""
    password: str = ""
    identity_token: str = ""
    registry_token: str = ""
    source: str = ""

    @property
    def is_anonymous(self) -> bool:
        """Whether nothing is to be sent."""
        return not (self.username or self.identity_token or self.registry_token)

    def __repr__(self) -> str:
        return f"Credential(source={self.source!r})"


@dataclass(frozen=True, slots=True)
class CredentialSource:
    """The content of one configuration: credentials by the key that names where they are valid."""

    name: str
    entries: tuple[tuple[str, Credential], ...]


def read_pull_secret(secret: JSONObject) -> CredentialSource:
    """Read a Secret of one of the two types for pulling images; raises ValueSyntaxError without its content."""
    metadata = secret.get("metadata") or {}
    name = f"{metadata.get('namespace') or ''}/{metadata.get('name') or ''}"
    kind = secret.get("type")
    if not isinstance(kind, str) or kind not in _TYPES:
        raise ValueSyntaxError(f"the Secret {name} is of no type for pulling images")
    key, is_wrapped = _TYPES[kind]
    data = secret.get("data")
    encoded = data.get(key) if isinstance(data, dict) else None
    if not isinstance(encoded, str) or len(encoded) > 2 * _MAX_BYTES:
        raise ValueSyntaxError(f"the Secret {name} has no usable `{key}`")
    try:
        raw = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        raise ValueSyntaxError(f"`{key}` of the Secret {name} is not base64") from None
    return read_docker_config(raw, f"Secret {name}", is_wrapped=is_wrapped)


def read_docker_config(data: bytes, name: str, *, is_wrapped: bool = True) -> CredentialSource:
    """Read a docker configuration (`is_wrapped`: below `auths`); raises ValueSyntaxError without its content."""
    try:
        body = decode(data) if len(data) <= _MAX_BYTES else None
    except DocumentError:
        body = None
    auths = body.get("auths", {}) if isinstance(body, dict) and is_wrapped else body
    if not isinstance(auths, dict):
        raise ValueSyntaxError(f"the {name} holds no docker configuration")
    return CredentialSource(name, tuple((key, _credential(value, name)) for key, value in auths.items()))


def credentials_for(registry: str, path: str, sources: Iterable[CredentialSource]) -> Sequence[Credential]:
    """Return the credentials that fit an image, source by source, the longest key first.

    >>> source = CredentialSource("Secret a/b", (("*.example.com/team", Credential("user", "word")),))
    >>> [each.username for each in credentials_for("eu.example.com", "team/app", [source])]
    ['user']
    """
    found: list[Credential] = []
    for source in sources:
        fitting = [(key, credential) for key, credential in source.entries if _fits(key, registry, path)]
        fitting.sort(key=lambda each: len(each[0]), reverse=True)
        found.extend(credential for _, credential in fitting)
    return found


def _fits(key: str, registry: str, path: str) -> bool:
    host, prefix = _split(key)
    if prefix and path != prefix and not path.startswith(f"{prefix}/"):
        return False
    wanted, wanted_port = split_port(registry_name(host))  # guard: a registry has one name for credentials
    given, given_port = split_port(registry_name(registry))
    labels, own = wanted.split("."), given.split(".")
    return (
        wanted_port == given_port
        and len(labels) == len(own)
        and all(match(label, each) for label, each in zip(labels, own, strict=True))
    )


def _split(key: str) -> tuple[str, str]:
    rest = key.partition("://")[2] or key
    host, _, path = rest.partition("/")
    path = path.strip("/")
    first, _, below = path.partition("/")
    # older tools write the URL of an API as the key
    return host, below if first in ("v1", "v2") else path


def _credential(value: JSON, name: str) -> Credential:
    value = value if isinstance(value, Mapping) else {}

    def text(key: str) -> str:
        found = value.get(key)
        return found if isinstance(found, str) else ""

    username, password = text("username"), text("password")
    if text("auth") and not username:
        try:
            pair = base64.b64decode(text("auth"), validate=True).decode()
        except (binascii.Error, ValueError):
            raise ValueSyntaxError(f"the {name} holds an entry that is not base64") from None
        username, _, password = pair.partition(":")
    return Credential(username, password.rstrip("\0"), text("identitytoken"), text("registrytoken"), name)
