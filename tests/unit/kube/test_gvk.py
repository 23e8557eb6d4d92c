"""Names of kinds and the selectors for them."""

import pytest

from pyverno.kube.gvk import GVK, KindSelector, parse_api_version, parse_kind_selector


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Pod", ("*", "*", "Pod", "")),
        ("Pod.status", ("*", "*", "Pod", "status")),
        ("Pod/status", ("*", "*", "Pod", "status")),
        ("v1/Pod.status", ("*", "v1", "Pod", "status")),
        ("apps/v1/Deployment/scale", ("apps", "v1", "Deployment", "scale")),
        ("batch/*/CronJob", ("batch", "*", "CronJob", "")),
        ("*/Pod", ("*", "*", "Pod", "")),
        ("*/scale", ("*", "*", "*", "scale")),
        ("*/*", ("*", "*", "*", "*")),
        ("v1.demo/v1/Demo", ("v1.demo", "v1", "Demo", "")),
        ("v10beta2/Foo", ("*", "v10beta2", "Foo", "")),
    ],
)
def test_kind_selectors_follow_the_grammar(text, expected):
    """Version-shaped parts decide how the others are read."""
    assert KindSelector(*expected) == parse_kind_selector(text)


@pytest.mark.parametrize(
    ("text", "subresource", "expected"),
    [("*", "", True), ("*", "status", False), ("*/*", "status", True), ("P*", "", True), ("Pod", "exec", False)],
)
def test_an_empty_subresource_selects_the_main_resource_only(text, subresource, expected):
    """Wildcards work in every part."""
    assert expected is parse_kind_selector(text).matches(GVK("", "v1", "Pod"), subresource)


def test_ephemeral_containers_count_as_pod_on_request():
    """Rules ask for it, cleanup policies do not."""
    selector = parse_kind_selector("Pod")
    assert selector.matches(GVK("", "v1", "Pod"), "ephemeralcontainers", is_ephemeral_pod=True)
    assert not selector.matches(GVK("", "v1", "Pod"), "ephemeralcontainers")


def test_api_versions_split_into_group_and_version():
    """The core group is empty."""
    assert (("", "v1"), ("apps", "v1")) == (parse_api_version("v1"), parse_api_version("apps/v1"))
