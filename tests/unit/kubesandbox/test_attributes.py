"""Requests on their way through the server."""

from __future__ import annotations

from kubesandbox.attributes import Notes
from tests.support.admissionstage import config_map, request


def test_a_changed_object_makes_another_request():
    """The first request stays as it was."""
    first = request(config_map())
    second = first.with_object(config_map("other"))
    assert ("c", "other") == (first.object["metadata"]["name"], second.object["metadata"]["name"])
    assert first.user is second.user


def test_a_warning_is_given_once():
    """Notes belong to one request and keep their order."""
    notes = Notes()
    for text in ("a", "b", "a"):
        notes.warn(text)
    assert ["a", "b"] == notes.warnings
    assert [] == Notes().warnings


def test_annotations_are_qualified_names_that_are_written_once():
    """The rules are those of an API server's audit log."""
    notes = Notes()
    for key, value in (("a.b/c", "1"), ("a.b/c", "2"), ("plain", "3"), ("a/b/c", "4"), ("A.b/c", "5"), ("a.b/-", "6")):
        notes.annotate(key, value)
    assert {"a.b/c": "1"} == notes.annotations
