"""Images of resources, by built-in and by declared places."""

from __future__ import annotations

import pytest

from pyverno.errors import ValueSyntaxError
from pyverno.images import BUILTIN_EXTRACTORS, compile_extractors, extract_images, find_images, list_images


def references(resource, extractors=None, **options):
    """Return the references by group and name."""
    compiled = None if extractors is None else compile_extractors(extractors)
    found = extract_images(resource, compiled, **options)
    return {group: {name: image["reference"] for name, image in images.items()} for group, images in found.items()}


def containers(**images):
    """Return a list of containers."""
    return [{"name": name, "image": image} for name, image in images.items()]


POD_SPEC = {
    "initContainers": containers(i="a:1"),
    "containers": containers(c="b:1", d="c:1"),
    "ephemeralContainers": [],
}
POD_IMAGES = {
    "initContainers": {"i": "docker.io/a:1"},
    "containers": {"c": "docker.io/b:1", "d": "docker.io/c:1"},
}


@pytest.mark.parametrize("kind", sorted(BUILTIN_EXTRACTORS))
def test_every_kind_with_pods_has_built_in_places(kind):
    """The path depends on the kind, groups without images are left out."""
    template = {"spec": POD_SPEC}
    spec = {"Pod": POD_SPEC, "CronJob": {"jobTemplate": {"spec": {"template": template}}}}.get(
        kind, {"template": template}
    )
    assert references({"kind": kind, "spec": spec}) == POD_IMAGES


@pytest.mark.parametrize(
    "resource",
    [
        {},
        {"kind": "ConfigMap", "spec": POD_SPEC},
        {"kind": "Pod"},
        {"kind": "Pod", "spec": None},
        {
            "kind": "Pod",
            "spec": {"containers": [{"name": "a"}, {"name": "b", "image": "  "}, {"name": "c", "image": None}, None]},
        },
        {"kind": ["Pod"]},
    ],
)
def test_a_resource_without_images_gives_nothing(resource):
    """Absent and blank images are left out."""
    assert extract_images(resource) == {}


@pytest.mark.parametrize(
    ("resource", "message"),
    [
        ({"kind": "Pod", "spec": "x"}, "invalid image config"),
        ({"kind": "Pod", "spec": {"containers": "x"}}, "invalid type"),
        ({"kind": "Pod", "spec": {"containers": ["x"]}}, "invalid image config"),
        ({"kind": "Pod", "spec": {"containers": [{"image": "a"}]}}, "invalid key"),
        (
            {"kind": "Pod", "spec": {"containers": containers(a=5)}},
            "invalid image at `/spec/containers/0/image` (it must be a string)",
        ),
        ({"kind": "Pod", "spec": {"volumes": [{"name": "v", "image": "x"}]}}, "invalid image config"),
        (
            {"kind": "Pod", "spec": {"containers": containers(a="A b")}},
            "invalid image at `/spec/containers/0/image` (invalid reference format)",
        ),
    ],
)
def test_another_shape_is_an_error(resource, message):
    """The texts are Kyverno's, except that no value is quoted."""
    with pytest.raises(ValueSyntaxError) as raised:
        extract_images(resource)
    assert message == raised.value.message


TASK = {"kind": "Task", "spec": {"steps": [{"name": "s", "image": "a:1"}, {"name": "t", "image": "b:1"}], "one": "c:1"}}


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        (
            [{"path": "/spec/steps/*", "value": "image", "key": "name", "name": "steps"}],
            {"steps": {"s": "docker.io/a:1", "t": "docker.io/b:1"}},
        ),
        (
            [{"path": " spec / steps//*/image"}],
            {"custom": {"/spec/steps/0/image": "docker.io/a:1", "/spec/steps/1/image": "docker.io/b:1"}},
        ),
        ([{"path": "/spec/one"}], {"custom": {"/spec/one": "docker.io/c:1"}}),
        (
            [{"path": "/spec/one", "jmesPath": "replace_all(@, 'c', 'd')"}],
            {"custom": {"/spec/one": "docker.io/d:1"}},
        ),
        (
            [{"path": "/spec/steps/*/image"}, {"path": "/spec/one"}],
            {
                "custom": {
                    "/spec/steps/0/image": "docker.io/a:1",
                    "/spec/steps/1/image": "docker.io/b:1",
                    "/spec/one": "docker.io/c:1",
                }
            },
        ),
        (
            [
                {"path": "/spec/steps/*/image"},
                {"path": "/spec/steps/*/image"},
            ],
            {"custom": {"/spec/steps/0/image": "docker.io/a:1", "/spec/steps/1/image": "docker.io/b:1"}},
        ),
        (
            [{"path": "/spec/one"}, {"path": "/spec/one", "jmesPath": "replace_all(@, 'c', 'd')"}],
            {"custom": {"/spec/one": "docker.io/d:1", "/spec/one (2)": "docker.io/c:1"}},
        ),
        ([{"path": "/spec/none/*/image"}], {}),
    ],
)
def test_a_policy_declares_places(entries, expected):
    """Paths with wildcards, keys, names and expressions."""
    assert expected == references(TASK, {"Task": entries})


def test_a_wildcard_walks_the_values_of_maps():
    """As well as the items of lists."""
    resource = {"kind": "K", "spec": {"x": {"image": "a:1"}, "y": {"image": "b:1"}}}
    expected = {"custom": {"/spec/x/image": "docker.io/a:1", "/spec/y/image": "docker.io/b:1"}}
    assert expected == references(resource, {"K": [{"path": "/spec/*/image"}]})


def test_declared_places_replace_the_built_in_ones_of_their_kinds_only():
    """Other kinds keep theirs."""
    extractors = {"Pod": [{"path": "/spec/image"}]}
    assert references({"kind": "Pod", "spec": {**POD_SPEC, "image": "x:1"}}, extractors) == {
        "custom": {"/spec/image": "docker.io/x:1"}
    }
    assert references({"kind": "Job", "spec": {"template": {"spec": POD_SPEC}}}, extractors) == POD_IMAGES


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ([], "no extractors found for Task"),
        ([{"path": "/spec/one", "jmesPath": "`5`"}], "jmespath `5` must produce a string"),
        ([{"path": "/spec/one", "jmesPath": "x("}], "invalid jmespath x(: SyntaxError"),
        ([{"path": "/spec/one", "jmesPath": "no(@)"}], "failed to apply jmespath no(@): "),
    ],
)
def test_places_that_can_not_be_read_are_errors(entries, message):
    """They surface when an image is looked for."""
    with pytest.raises(ValueSyntaxError) as raised:
        references(TASK, {"Task": entries})
    assert raised.value.message.startswith(message)


def test_a_place_without_a_path_is_an_error_at_load():
    """A place without a path can never match an image."""
    with pytest.raises(ValueSyntaxError, match="needs a path"):
        compile_extractors({"Task": [{"path": " / "}]})


def test_pull_secrets_are_collected_on_the_way():
    """The secrets are those of the pod, in order."""
    spec = {"imagePullSecrets": [{"name": "one"}, {}, "x", {"name": "two"}], "containers": containers(c="a")}
    image = find_images({"kind": "Pod", "spec": spec})["containers"]["c"]
    assert image.pull_secrets == ("one", "two")
    assert image.pointer == "/spec/containers/0/image"


def test_images_with_one_name_all_have_one():
    """The last has it, as in Kyverno, and the others are named by their places."""
    listed = [{"name": "a", "image": "a:1"}, {"name": "a", "image": "b:1"}, {"name": "a", "image": "c:1"}]
    expected = {"/spec/containers/0/image": "docker.io/a:1", "/spec/containers/1/image": "docker.io/b:1"}
    assert {"containers": {**expected, "a": "docker.io/c:1"}} == references(
        {"kind": "Pod", "spec": {"containers": listed}}
    )


def test_lists_in_lists_are_walked():
    """With a wildcard for each."""
    resource = {"kind": "K", "spec": [[{"image": "a:1"}], [{"image": "b:1"}, {"image": "c:1"}]]}
    found = references(resource, {"K": [{"path": "/spec/*/*/image"}]})
    assert ["docker.io/a:1", "docker.io/b:1", "docker.io/c:1"] == list(found["custom"].values())


def test_an_image_that_cannot_be_read_is_beside_the_others():
    """The places that have another shape, too."""
    spec = {"containers": [*containers(a="a:1", b="::"), "x"], "initContainers": "y", "volumes": [{"name": "v"}]}
    found = list_images({"kind": "Pod", "spec": spec})
    assert ["docker.io/a:1"] == [image.reference for _, _, image in found.images]
    reason = "invalid image at `/spec/containers/1/image` (invalid reference format)"
    assert ("invalid type", "invalid image config", reason) == found.problems


def test_settings_of_the_default_registry_reach_every_image():
    """The settings apply as they do to single references."""
    pod = {"kind": "Pod", "spec": {"containers": containers(c="a")}}
    assert references(pod, default_registry="r.io") == {"containers": {"c": "r.io/a:latest"}}
    assert references(pod, mutate_registry=False) == {"containers": {"c": "a:latest"}}
