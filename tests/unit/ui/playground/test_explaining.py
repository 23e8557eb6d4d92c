"""Explanations in the playground."""

from __future__ import annotations

import pytest

from pyverno.errors import UsageError
from pyverno.ui.playground.review import review_texts
from tests.support import documents
from tests.unit.ui.playground.test_review import POD

TEXTS = {"policies": f"{documents.LATEST}---\n{documents.CLEANUP}", "resources": f"{POD}---\n{documents.NAMESPACE}"}


def test_every_line_of_an_explanation_has_its_place_in_the_texts() -> None:
    """A rule's line points into the policies, a value's line into the resources."""
    found = review_texts({**TEXTS, "explain": True})
    (rule,) = [each for each in found["reviews"][0]["rules"] if each["rule"] == "tag"]
    places = {line["text"]: line["place"] for line in rule["lines"]}
    field = next(place for text, place in places.items() if text.startswith("spec.containers[0].image: wanted"))
    assert (True, ["fail"]) == (rule["matched"], rule["statuses"])
    assert {"input": "resources", "line": 6, "column": 22} == field
    assert "policies" == places["pattern: fail"]["input"]


def test_rules_that_do_not_match_give_the_reason() -> None:
    """The explanation names the condition that does not match, here the kind."""
    found = review_texts({**TEXTS, "explain": True})
    (rule,) = [each for each in found["reviews"][1]["rules"] if each["rule"] == "tag"]
    assert not rule["matched"]
    assert any("kind" in line["text"] for line in rule["lines"])


def test_nothing_is_explained_without_a_request() -> None:
    """A review without explanations costs less."""
    assert all("rules" not in each for each in review_texts(TEXTS)["reviews"])


def test_the_smallest_change_is_that_of_the_one_result_that_is_named() -> None:
    """Its value makes the rule pass."""
    change = {"resource": 0, "policy": "no-latest", "rule": "tag"}
    found = review_texts({**TEXTS, "change": change})
    (rule,) = [each for each in found["reviews"][0]["rules"] if "change" in each]
    assert 'set spec.containers[0].image to "x:v1"' == rule["change"][1]["text"]
    assert "no-latest" == rule["policy"]


@pytest.mark.parametrize("change", [1, "x", {}, {"resource": "0", "policy": "p", "rule": "r"}, []])
def test_a_change_of_another_form_is_an_error(change: object) -> None:
    """A malformed change is never treated as no change."""
    with pytest.raises(UsageError, match="change"):
        review_texts({**TEXTS, "change": change})


def test_an_update_is_explained_with_the_object_before_it() -> None:
    """The explanation uses the old object of the review."""
    old = POD.replace("x:latest", "x:1")
    found = review_texts({"policies": documents.LATEST, "resources": POD, "oldResources": old, "explain": True})
    (review,) = found["reviews"]
    assert "UPDATE" == review["operation"]
    assert ["fail"] == next(each["statuses"] for each in review["rules"] if each["rule"] == "tag" and not each["isOld"])
