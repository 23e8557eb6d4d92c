"""Image references as policies see them."""

from __future__ import annotations

import pytest

from pyverno.errors import ValueSyntaxError
from pyverno.images import parse_image

DIGEST = "sha256:" + "a1" * 32


@pytest.mark.parametrize(
    ("text", "registry", "path", "name", "tag", "digest", "reference", "with_tag"),
    [
        ("nginx", "docker.io", "nginx", "nginx", "latest", "", "docker.io/nginx:latest", "docker.io/nginx:latest"),
        ("a/b:1", "docker.io", "a/b", "b", "1", "", "docker.io/a/b:1", "docker.io/a/b:1"),
        ("localhost/b", "localhost", "b", "b", "latest", "", "localhost/b:latest", "localhost/b:latest"),
        (f"r.io:5/b@{DIGEST}", "r.io:5", "b", "b", "", DIGEST, f"r.io:5/b@{DIGEST}", "r.io:5/b:"),
        (f"r.io/b:1@{DIGEST}", "r.io", "b", "b", "1", DIGEST, f"r.io/b@{DIGEST}", "r.io/b:1"),
        ("my_r.io/a/b:1", "my_r.io", "a/b", "b", "1", "", "my_r.io/a/b:1", "my_r.io/a/b:1"),
    ],
)
def test_a_reference_is_normalised(text, registry, path, name, tag, digest, reference, with_tag):
    """Registry and tag are added, a digest is shown rather than a tag."""
    image = parse_image(text)
    actual = (image.registry, image.path, image.name, image.tag, image.digest)
    assert (registry, path, name, tag, digest) == actual
    assert (reference, with_tag) == (image.reference, image.reference_with_tag)


def test_the_default_registry_may_be_another_or_stay_away():
    """Both are settings."""
    assert parse_image("a/b", default_registry="gcr.io").reference == "gcr.io/a/b:latest"
    image = parse_image("a/b", default_registry="gcr.io", mutate_registry=False)
    assert (image.registry, image.reference) == ("", "a/b:latest")


def test_the_variable_image_has_all_parts_and_an_entry_of_images_only_those_that_exist():
    """A missing digest is an unknown key in `images`, an empty text in `image`."""
    image = parse_image("nginx:1").at(("spec", "containers", "0", "image"))
    assert image.to_entry() == {
        "registry": "docker.io",
        "path": "nginx",
        "name": "nginx",
        "tag": "1",
        "reference": "docker.io/nginx:1",
        "referenceWithTag": "docker.io/nginx:1",
        "jsonPointer": "/spec/containers/0/image",
    }
    assert set(image.to_variable()) == {"registry", "path", "name", "tag", "digest", "reference", "referenceWithTag"}


def test_a_bad_reference_is_an_error():
    """The error has the reference and the reason that it does not parse."""
    with pytest.raises(ValueSyntaxError, match=r"^bad image: docker\.io/nginx:::, defaultRegistry: docker\.io, "):
        parse_image("nginx:::")
