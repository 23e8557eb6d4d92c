"""Globs over images: what they select, and what they leave out."""

from __future__ import annotations

import pytest

from pyverno.kube.imageref.globs import exempting, exempting_text, selecting
from pyverno.kube.imageref.reference import parse_reference

DIGEST = "sha256:" + "0" * 64


CASES = [
    ("*", "nginx", True, True),
    ("", "nginx", False, False),
    ("nginx", "nginx", True, True),
    ("nginx", "nginx:1", False, False),
    ("nginx:1", "docker.io/library/nginx:1", True, True),
    ("nginx*", "nginx/app", True, False),
    ("nginx*", "nginx.example.com/app", True, False),
    ("*nginx*", "example.com/nginx", True, True),
    ("library/*", "nginx", True, True),
    ("ghcr.io/a/*:RC", "ghcr.io/a/b:RC", True, True),
    ("ghcr.io/a/*:RC", "ghcr.io/a/b:rc", False, False),
    ("GHCR.io/A/b:V?", "ghcr.io/a/b:V1", True, True),
    ("ghcr.io/a/b:*", f"ghcr.io/a/b@{DIGEST}", True, True),
    ("ghcr.io/a/b:v*", f"ghcr.io/a/b@{DIGEST}", False, False),
    ("ghcr.io/a/b:v*", f"ghcr.io/a/b:v1@{DIGEST}", True, False),
    (f"ghcr.io/a/b:v1@{DIGEST}", f"ghcr.io/a/b:v1@{DIGEST}", True, True),
    (f"ghcr.io/a/b@{DIGEST}", f"ghcr.io/a/b:v1@{DIGEST}", True, True),
    ("ghcr.io/a/b*", f"ghcr.io/a/b:v1@{DIGEST}", True, True),
    ("ghcr.io:80/a/*", "ghcr.io/a/b", False, False),
    ("ghcr.io/a/*", "ghcr.io:80/a/b", True, False),
    ("ghcr.io*", "ghcr.io/a", True, True),
    ("ghcr.io*", "ghcr.io.example.com/a", True, False),
    ("ghcr.io*/a", "ghcr.io:5000/a", True, False),
    ("registry.*.example.com/*", "registry.eu.example.com/a", True, True),
    ("registry.*.example.com/*", "registry.evil.org/x.example.com/a", True, False),
    ("registry.*.example.com/*", "registry.a.b.example.com/a", True, False),
    ("*.example.com/*", "a.b.example.com/c", True, True),
    ("*.example.com/*", "evil.org/x.example.com/c", True, False),
    ("*.example.com*", "a.example.com/b", True, True),
    ("*.example.com*", "evil.org/x.example.com/b", True, False),
    ("*.example.com*", "a.example.com.evil.org/b", True, False),
    ("registry.*.io*", "registry.eu.io/b", True, True),
    ("registry.*.io*", "registry.eu.io.evil.org/b", True, False),
    ("*:1.2*", "example.com/a:1.27", True, True),
    (f"ghcr.io/a/b:v1@{DIGEST}", f"ghcr.io/a/b@{DIGEST}", True, True),
    (f"ghcr.io/a/b:v1@{DIGEST}", f"ghcr.io/a/b:v2@{DIGEST}", True, True),
    ("[0:0::1]:5000/*", "[::1]:5000/a", True, True),
    ("localhost*", "localhost/a", True, True),
    ("localhost*", "localhost.example.com/a", True, False),
    ("my.app*", "my.app:1", True, True),
    ("Registry/*", "registry:443/a", True, True),
    ("Registry/*", "registry/a", True, False),
    ("ghcr.io/*", "ghcr.io", False, False),
    ("localhost/*", "localhost", False, False),
    ("10.0.0.1:5000/*", "[::ffff:a00:1]:5000/a", True, True),
    ("[::FFFF:10.0.0.1]:5000/*", "10.0.0.1:5000/a", True, True),
]
"""A glob and an image, whether it is selected, and whether it is exempt."""


@pytest.mark.parametrize(("pattern", "image", "selects", "exempts"), CASES)
def test_a_glob_selects_and_exempts(pattern: str, image: str, selects: bool, exempts: bool) -> None:
    """What enforces takes every spelling, what exempts only the certain ones."""
    reference = parse_reference(image)
    assert (selects, exempts) == (selecting(pattern)(reference), exempting(pattern)(reference))


@pytest.mark.parametrize(
    ("pattern", "image", "expected"),
    [
        ("gcr.io/*", "nginx", True),
        ("nginx*", "nginx", True),
        ("docker.io/*", "nginx", False),
        ("nginx*", "docker.io/nginx", False),
        ("docker.io/nginx*", "docker.io/nginx", True),
    ],
)
@pytest.mark.parametrize("mutates", [True, False])
def test_the_default_registry_is_that_of_the_installation(
    pattern: str, image: str, expected: bool, mutates: bool
) -> None:
    """Whether or not it is shown."""
    assert expected == exempting(pattern)(parse_reference(image, "gcr.io", mutates))


def test_a_text_that_does_not_parse_is_exempt_from_nothing_but_everything() -> None:
    """A glob that names all images needs no reference."""
    assert [False, True] == [exempting_text(each)("docker://nginx") for each in ("docker*", "*")]


def test_what_is_exempt_would_be_selected() -> None:
    """An exemption is never wider than the same glob where it enforces."""
    images = [parse_reference(image) for _, image, _, _ in CASES]
    wider = [
        (pattern, str(image))
        for pattern in dict.fromkeys(pattern for pattern, *_ in CASES)
        for image in images
        if exempting(pattern)(image) and not selecting(pattern)(image)
    ]
    assert [] == wider
