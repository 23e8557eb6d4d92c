"""The choice of credentials for an image."""

from __future__ import annotations

import base64
import json

import pytest

from pyverno.errors import ValueSyntaxError
from pyverno.registry.credentials import (
    Credential,
    CredentialSource,
    credentials_for,
    read_docker_config,
    read_pull_secret,
)


def _secret(auths: object, kind: str = "kubernetes.io/dockerconfigjson") -> dict[str, object]:
    key = ".dockerconfigjson" if kind.endswith("json") else ".dockercfg"
    body = {"auths": auths} if kind.endswith("json") else auths
    data = base64.b64encode(json.dumps(body).encode()).decode()
    return {"metadata": {"name": "pull", "namespace": "team"}, "type": kind, "data": {key: data}}


@pytest.mark.parametrize("kind", ["kubernetes.io/dockerconfigjson", "kubernetes.io/dockercfg"])
def test_a_pull_secret_of_either_type_is_read(kind: str) -> None:
    """The older type has its entries at the top level."""
    entry = {"auth": base64.b64encode(b"user:pass:word").decode()}
    source = read_pull_secret(_secret({"registry.example.com": entry}, kind))
    assert (
        CredentialSource(
            "Secret team/pull",
            (("registry.example.com", Credential("user", "pass:word", source="Secret team/pull")),),
        )
        == source
    )


@pytest.mark.parametrize(
    ("key", "image", "fits"),
    [
        ("registry.example.com", ("registry.example.com", "team/app"), True),
        ("registry.example.com", ("registry.example.com:5000", "team/app"), False),
        ("registry.example.com:5000", ("registry.example.com:5000", "team/app"), True),
        ("https://registry.example.com/v2/", ("registry.example.com", "team/app"), True),
        ("registry.example.com/team", ("registry.example.com", "team/app"), True),
        ("registry.example.com/team", ("registry.example.com", "teammate/app"), False),
        ("*.example.com", ("eu.example.com", "a"), True),
        ("*.example.com", ("a.eu.example.com", "a"), False),
        ("https://index.docker.io/v1/", ("docker.io", "nginx"), True),
        ("docker.io", ("index.docker.io", "nginx"), True),
        ("registry-1.docker.io:443", ("docker.io", "nginx"), True),
        ("Registry.Example.COM:443/team", ("registry.example.com", "team/app"), True),
        ("registry.example.com:80", ("registry.example.com", "team/app"), False),
        ("[0:0::1]:5000", ("[::1]:5000", "a"), True),
        ("[::1]", ("[::1]:5000", "a"), False),
        ("evil.com", ("registry.example.com", "a"), False),
    ],
)
def test_a_key_fits_by_host_port_and_path(key: str, image: tuple[str, str], fits: bool) -> None:
    """A wildcard matches part of one label; a path matches itself and its subpaths."""
    source = CredentialSource("file", ((key, Credential("user", "word")),))
    assert fits is bool(credentials_for(*image, [source]))


def test_the_longest_key_comes_first_within_a_source() -> None:
    """The most specific credential is tried first; sources keep their order."""
    first = CredentialSource("a", (("r.io", Credential("wide")), ("r.io/team", Credential("narrow"))))
    second = CredentialSource("b", (("r.io/team/app", Credential("last")),))
    found = [each.username for each in credentials_for("r.io", "team/app", [first, second])]
    assert ["narrow", "wide", "last"] == found


@pytest.mark.parametrize(
    ("secret", "message"),
    [
        ({"type": "Opaque", "metadata": {"name": "a", "namespace": "b"}}, "the Secret b/a is of no type"),
        (
            {**_secret({}), "data": {".dockerconfigjson": "%%%"}},
            "`.dockerconfigjson` of the Secret team/pull is not base64",
        ),
        ({**_secret({}), "data": {}}, "the Secret team/pull has no usable `.dockerconfigjson`"),
        (
            {**_secret({}), "data": {".dockerconfigjson": base64.b64encode(b"canary").decode()}},
            "the Secret team/pull holds no docker configuration",
        ),
        (_secret({"r": {"auth": "canary%"}}), "the Secret team/pull holds an entry that is not base64"),
    ],
)
def test_an_unusable_secret_is_named_without_its_content(secret: dict[str, object], message: str) -> None:
    """The reason names the Secret and never its data."""
    with pytest.raises(ValueSyntaxError) as caught:
        read_pull_secret(secret)
    assert caught.value.message.startswith(message)
    assert "canary" not in caught.value.message


def test_a_docker_configuration_of_the_wrong_form_is_refused() -> None:
    """For example, a list is not a map of registries."""
    with pytest.raises(ValueSyntaxError, match="the file holds no docker configuration"):
        read_docker_config(b"[]", "file")
