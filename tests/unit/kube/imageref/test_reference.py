"""Image references: taken apart, normalised, refused."""

import pytest

from pyverno.errors import ValueSyntaxError
from pyverno.kube.imageref.reference import parse_reference

DIGEST = "sha256:" + "0123456789abcdef" * 4


@pytest.mark.parametrize(
    ("text", "registry", "path", "name", "tag", "digest", "shown"),
    [
        ("nginx", "docker.io", "nginx", "nginx", "latest", "", "docker.io/nginx:latest"),
        ("a/b:1", "docker.io", "a/b", "b", "1", "", "docker.io/a/b:1"),
        ("ghcr.io/a/b/c", "ghcr.io", "a/b/c", "c", "latest", "", "ghcr.io/a/b/c:latest"),
        ("localhost/a", "localhost", "a", "a", "latest", "", "localhost/a:latest"),
        ("host:5000/a", "host:5000", "a", "a", "latest", "", "host:5000/a:latest"),
        ("Upper/a", "upper:443", "a", "a", "latest", "", "upper:443/a:latest"),
        (f"a@{DIGEST}", "docker.io", "a", "a", "", DIGEST, f"docker.io/a@{DIGEST}"),
        (f"ghcr.io/a/b:1@{DIGEST}", "ghcr.io", "a/b", "b", "1", DIGEST, f"ghcr.io/a/b@{DIGEST}"),
        ("[::1]:5000/a:t", "[::1]:5000", "a", "a", "t", "", "[::1]:5000/a:t"),
    ],
)
def test_a_reference_has_these_parts(text, registry, path, name, tag, digest, shown):
    """The digest is printed rather than the tag."""
    found = parse_reference(text)
    assert (registry, path, name, tag, digest) == (found.registry, found.path, found.name, found.tag, found.digest)
    assert shown == str(found)


@pytest.mark.parametrize(
    ("text", "default", "mutate", "expected"),
    [
        ("nginx", "gcr.io", True, "gcr.io/nginx:latest"),
        ("nginx", "gcr.io", False, "nginx:latest"),
        ("gcr.io/nginx", "gcr.io", False, "gcr.io/nginx:latest"),
        ("a/b", "10.dkr.example.com/docker", True, "10.dkr.example.com/docker/a/b:latest"),
        ("my_reg/b", "gcr.io", False, "my_reg/b:latest"),
    ],
)
def test_the_default_registry_is_configurable(text, default, mutate, expected):
    """Without mutation an added registry is left out again."""
    assert expected == str(parse_reference(text, default, mutate))


def test_the_form_with_tag_is_open_when_there_is_none():
    """The form is that of Kyverno's referenceWithTag."""
    assert "docker.io/a:" == parse_reference(f"a@{DIGEST}").with_tag


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "invalid reference format"),
        ("a:b:c", "invalid reference format"),
        ("a b", "invalid reference format"),
        ("ghcr.io/UPPER/x", "repository name must be lowercase"),
        ("a@sha256:12", "invalid reference format"),
        ("a@sha256:" + "0" * 40, "invalid checksum digest length"),
        ("a@md5:" + "0" * 32, "unsupported digest algorithm"),
        ("a/" * 3000 + "a", "invalid reference format"),
        ("ghcr.io/" + "a" * 300, "repository name must not be more than 255 characters"),
    ],
)
def test_a_bad_reference_has_a_reason(text, reason):
    """The prefix names the reference and the configuration, the reason is distribution's."""
    with pytest.raises(ValueSyntaxError) as caught:
        parse_reference(text)
    assert caught.value.message.startswith("bad image: ")
    assert caught.value.message.endswith(f"defaultRegistry: docker.io, enableDefaultRegistryMutation: true: {reason}")


def test_a_reference_of_more_than_4096_characters_is_refused():
    """No registry has such a name, and matching it would take long."""
    longest = "a/" * 2000 + "a"
    with pytest.raises(ValueSyntaxError, match="repository name must not be more than 255 characters"):
        parse_reference(longest)
    with pytest.raises(ValueSyntaxError, match="invalid reference format"):
        parse_reference("a/" * 3000 + "a")


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("nginx", "docker.io/library/nginx:latest"),
        ("Index.Docker.IO/library/nginx", "docker.io/library/nginx:latest"),
        ("registry-1.docker.io/a/b:1", "docker.io/a/b:1"),
        (f"GHCR.IO:443/a/b:1@{DIGEST}", f"ghcr.io/a/b:1@{DIGEST}"),
        ("Upper/a", "upper:443/a:latest"),
        ("upper/a", "docker.io/upper/a:latest"),
        ("my_reg.io/b", "my_reg.io/b:latest"),
        ("my_reg/b", "docker.io/my_reg/b:latest"),
    ],
)
def test_a_reference_has_one_normal_form(text, normal):
    """It names the same image, and is its own normal form, whatever the installation shows."""
    assert [normal] * 3 == [
        parse_reference(text).normal,
        parse_reference(normal).normal,
        parse_reference(text, mutate_registry=False).normal,
    ]
