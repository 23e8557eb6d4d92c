"""Hashes of templates and ControllerRevisions."""

from __future__ import annotations

from kubesandbox.controllers.workloads.revision import (
    ALPHABET,
    history_excess,
    revision_of,
    short_hash,
    sorted_revisions,
    template_of,
)
from pyverno.kube.json import JSONObject

TEMPLATE: JSONObject = {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": []}}
OWNER: JSONObject = {
    "apiVersion": "apps/v1",
    "kind": "StatefulSet",
    "metadata": {"name": "db", "namespace": "n", "uid": "u"},
    "spec": {"template": TEMPLATE},
}


def test_hashes_are_short_and_can_stand_in_names() -> None:
    """Eight to ten characters of the alphabet of generated names."""
    found = [short_hash({"n": number}) for number in range(300)]
    assert 300 == len(set(found))
    assert all(8 <= len(text) <= 10 and set(text) <= set(ALPHABET) for text in found)


def test_a_template_that_was_there_before_gets_the_highest_number() -> None:
    """The same revision, under the same name."""
    first = revision_of(OWNER, [], hash_label="hash")
    digest = first["metadata"]["labels"]["hash"]
    assert (1, f"db-{digest}", {"app": "db", "hash": digest}) == (
        first["revision"],
        first["metadata"]["name"],
        first["metadata"]["labels"],
    )
    assert TEMPLATE == template_of(first)
    changed = {**OWNER, "spec": {"template": {**TEMPLATE, "spec": {"containers": [1]}}}}
    second = revision_of(changed, [first], hash_label="hash")
    assert 2 == second["revision"]
    assert {**first, "revision": 3} == revision_of(OWNER, [first, second], hash_label="hash")
    assert second is revision_of(changed, [first, second], hash_label="hash")


def test_only_unused_revisions_are_excess() -> None:
    """The oldest unused revisions are deleted first."""
    revisions = [{"metadata": {"name": name}, "revision": number} for number, name in enumerate("abcd")]
    assert ["a", "b", "c", "d"] == [item["metadata"]["name"] for item in sorted_revisions(reversed(revisions))]
    assert ["b"] == [item["metadata"]["name"] for item in history_excess(revisions, ["a", "d"], 1)]
    assert [] == history_excess(revisions, ["a"], 3)
