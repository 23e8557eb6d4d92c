"""Claims about wildcard keys of labels and annotations."""

import pytest

from pyverno.kube.json import JSON
from pyverno.lang.pattern.metadata import compile_key, find_tag, text_entries
from pyverno.lang.pattern.validate import compile_pattern


@pytest.mark.parametrize(
    ("key", "labels", "expected"),
    [
        ("app*", {"b": "1", "app/y": "1", "app/x": "1"}, ["app/x", "app/y"]),
        ("=(app*)", {"app": "1", "apps": "1"}, ["=(app)", "=(apps)"]),
        (" X( a? ) ", {" ab ": "1"}, ["X( ab )"]),
        ("app*", {"b": "1"}, ["app*"]),
        ("=(app*)", {}, ["=(app*)"]),
        ("app*", {"app": 1}, ["app*"]),
    ],
)
def test_a_wildcard_key_stands_for_every_key_it_matches(key: str, labels: dict[str, JSON], expected: list[str]) -> None:
    """Anchors stay; without a match, or with values that are no text, the key stays too."""
    resolve = compile_key(key)
    assert resolve is not None
    assert expected == [text for text, _ in resolve(labels)]


def test_plain_keys_need_no_resolver() -> None:
    """A key without wildcards never depends on the resource."""
    assert compile_key("=(app)") is None


def test_tags_are_found_under_anchors() -> None:
    """The plain key wins over anchored ones."""
    assert find_tag({"=(labels)": 1, "labels": 2}, "labels") == "labels"
    assert find_tag({"X(labels)": 1, "=(labels)": 2}, "labels") == "=(labels)"
    assert find_tag({"annotations": 1}, "labels") is None


def test_values_that_are_no_text_are_dropped() -> None:
    """Null, numbers, bools and maps do not survive the expansion."""
    assert text_entries({"a": "b", "c": None, "d": 1, "e": True, "f": {}}) == {"a": "b"}


LABELS = "/metadata/labels/"
MATCHES = [
    ({"metadata": {"labels": {"app*": "?*"}}}, {"metadata": {"labels": {"application": "x"}}}, "pass", ""),
    ({"metadata": {"labels": {"app*": "?*"}}}, {"metadata": {"labels": {"b": "x"}}}, "fail", f"{LABELS}app*/"),
    ({"metadata": {"labels": {"app*": "?*"}}}, {"metadata": {}}, "fail", "/metadata/labels/"),
    (
        {"metadata": {"=(labels)": {"=(a*)": "x"}}},
        {"metadata": {"labels": {"ab": "y"}}},
        "fail",
        "/metadata/labels/ab/",
    ),
    (
        {"=(metadata)": {"labels": {"X(a*)": "x"}}},
        {"metadata": {"labels": {"ab": "y"}}},
        "fail",
        "/metadata/labels/ab/",
    ),
    ({"metadata": {"annotations": {"(a*)": "x"}}}, {"metadata": {"annotations": {"ab": "y"}}}, "skip", ""),
    ({"metadata": {"labels": {"X(foo)": None}}}, {"metadata": {"labels": {"foo": "x"}}}, "pass", ""),
    (
        {"metadata": {"labels": {"X(foo)": "null"}}},
        {"metadata": {"labels": {"foo": "x"}}},
        "fail",
        f"{LABELS}foo/",
    ),
    ({"labels": {"a*": "x"}}, {"labels": {"ab": "x"}}, "fail", "/labels/a*/"),
    (
        {"spec": {"template": {"metadata": {"labels": {"a*": "x"}}}}},
        {"spec": {"template": {"metadata": {"labels": {"ab": "x"}}}}},
        "pass",
        "",
    ),
    (
        {"items": [{"metadata": {"labels": {"a*": "x"}}}]},
        {"items": [{"metadata": {"labels": {"ab": "x"}}}, {"metadata": {"labels": {"ac": "x"}}}]},
        "pass",
        "",
    ),
    (
        {"metadata": {"metadata": {"labels": {"a*": "x"}}}},
        {"metadata": {"metadata": {"labels": {"ab": "x"}}}},
        "pass",
        "",
    ),
]


@pytest.mark.parametrize(("pattern", "resource", "status", "path"), MATCHES)
def test_wildcard_keys_work_under_any_metadata(pattern: JSON, resource: JSON, status: str, path: str) -> None:
    """Every map with a metadata key has its labels and annotations expanded, each resource for itself."""
    compiled = compile_pattern(pattern)
    outcome = compiled.match(resource)
    assert (outcome.status.value, outcome.path) == (status, path)
    if compiled.passes is not None:
        assert compiled.passes(resource) is (status == "pass")
