"""Hosts of registries have one text."""

from __future__ import annotations

import pytest

from pyverno.kube.imageref.hosts import is_docker_hub, normal_host, registry_name, split_port


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ghcr.io", "ghcr.io"),
        ("GHCR.IO", "ghcr.io"),
        ("ghcr.io.", "ghcr.io"),
        ("ghcr.io:443", "ghcr.io"),
        ("ghcr.io:0443", "ghcr.io"),
        ("ghcr.io:80", "ghcr.io:80"),
        ("ghcr.io:5000", "ghcr.io:5000"),
        ("XN--BCHER-KVA.example", "xn--bcher-kva.example"),
        ("10.0.0.1:443", "10.0.0.1"),
        ("[::1]:5000", "[::1]:5000"),
        ("[2001:DB8:0:0::1]:443", "[2001:db8::1]"),
        ("[zz]", "[zz]"),
        ("localhost", "localhost"),
        ("LOCALHOST:443", "localhost:443"),
        ("Registry", "registry:443"),
        ("registry:443", "registry:443"),
        ("registry:5000", "registry:5000"),
        ("docker.io:443", "docker.io"),
        ("index.docker.io", "index.docker.io"),
        ("Registry-1.Docker.IO", "docker.io"),
        ("registry-1.docker.io:5000", "registry-1.docker.io:5000"),
        ("ghcr.io:" + "9" * 4000, "ghcr.io:" + "9" * 4000),
    ],
)
def test_a_host_has_one_text(text: str, expected: str) -> None:
    """The normal form of a normal form is the same."""
    assert (expected, expected) == (normal_host(text), normal_host(expected))


def test_docker_hub_has_three_names() -> None:
    """They are one registry."""
    names = ("docker.io", "index.docker.io", "registry-1.docker.io")
    assert [(True, "docker.io")] * 3 == [(is_docker_hub(each), registry_name(each)) for each in names]
    assert (False, "docker.io.example.com") == (is_docker_hub("quay.io"), registry_name("docker.io.example.com"))


def test_a_port_follows_the_last_colon_outside_of_brackets() -> None:
    """An IPv6 address has colons of its own."""
    found = [split_port(each) for each in ("a", "a:1", "[::1]", "[::1]:1")]
    assert [("a", ""), ("a", "1"), ("[::1]", ""), ("[::1]", "1")] == found
