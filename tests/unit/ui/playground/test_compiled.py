"""The cache of compiled policies."""

from __future__ import annotations

from pyverno.ui.playground.compiled import compile_text
from pyverno.ui.playground.review import review_texts
from tests.support import documents
from tests.unit.ui.playground.test_review import POD


def test_the_same_text_is_compiled_once() -> None:
    """A different text is compiled again."""
    first = compile_text(documents.LATEST, "policies")
    assert first is compile_text(documents.LATEST, "policies")
    assert first is not compile_text(documents.AUDITED, "policies")


def test_a_long_text_is_not_kept() -> None:
    """Long texts are not cached, so that a worker's memory stays bounded."""
    text = documents.LATEST + "#" * 200_000
    assert compile_text(text, "policies") is not compile_text(text, "policies")


def test_what_lints_find_is_among_the_problems() -> None:
    """Each lint finding has code, severity and place."""
    policy = documents.LATEST.replace("kinds: [Pod]", "kinds: [Pods]")
    found = review_texts({"policies": policy, "resources": POD})
    (lint,) = [each for each in found["problems"] if each["message"].startswith("PV")]
    assert ("policies", True) == (lint["input"], lint["line"] > 1)


def test_broken_definitions_are_one_problem() -> None:
    """Unknown kinds cannot be found without the definitions, so only the broken input is reported."""
    policy = documents.LATEST.replace("kinds: [Pod]", "kinds: [Widget]")
    found = review_texts({"policies": policy, "resources": POD, "crds": "a: ["})
    assert ["crds"] == [each["input"] for each in found["problems"]]


def test_a_review_does_not_see_an_earlier_one() -> None:
    """Problems of an earlier review do not appear in later ones."""
    broken = documents.LATEST.replace("validate:", "validat:")
    first = review_texts({"policies": broken, "resources": POD})
    assert first["problems"]
    assert [] == review_texts({"policies": documents.LATEST, "resources": POD})["problems"]
    assert first == review_texts({"policies": broken, "resources": POD})
