"""Reading objects and their owners."""

from __future__ import annotations

from kubesandbox.controllers.objects import (
    adoption,
    at,
    claim,
    controller_of,
    is_owned_by,
    number_at,
    owner_reference,
    with_metadata,
)
from pyverno.kube.json import JSONObject

OWNER: JSONObject = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "web", "uid": "u"}}


def thing(name: str, labels: dict[str, str], *owners: JSONObject, **metadata: object) -> JSONObject:
    return {"metadata": {"name": name, "uid": name, "labels": labels, "ownerReferences": list(owners), **metadata}}


def test_objects_are_divided_by_owner_and_selector() -> None:
    """Own, adopted and released ones; those of other owners and those being deleted are left out."""
    mine, other = owner_reference(OWNER), {**owner_reference(OWNER), "uid": "other"}
    fits = {"app": "web"}
    found = claim(
        OWNER,
        [
            thing("owned", fits, mine),
            thing("changed", {}, mine),
            thing("foreign", fits, other),
            thing("orphan", fits),
            thing("leaving", fits, deletionTimestamp="x"),
            thing("unfit", {}),
            thing("dead", fits, phase="Failed"),
        ],
        lambda labels: labels.get("app") == "web",
        may_adopt=lambda body: body["metadata"].get("phase") != "Failed",
    )
    divided = [[body["metadata"]["name"] for body in group] for group in (found.owned, found.adopted, found.released)]
    assert [["owned"], ["orphan"], ["changed"]] == divided


def test_an_owner_that_leaves_adopts_and_releases_nothing() -> None:
    """It keeps its objects until its own deletion."""
    leaving = with_metadata(OWNER, deletionTimestamp="x")
    found = claim(leaving, [thing("a", {}, owner_reference(OWNER)), thing("b", {})], lambda _labels: False)
    assert (["a"], (), ()) == ([body["metadata"]["name"] for body in found.owned], found.adopted, found.released)


def test_an_adoption_is_for_one_state_of_one_object() -> None:
    """Its uid and version are in the patch; other owners stay."""
    body = thing("a", {}, {"uid": "x"}, resourceVersion="7")
    metadata = adoption(body, OWNER)["metadata"]
    assert ("a", "7", ["x", "u"]) == (
        metadata["uid"],
        metadata["resourceVersion"],
        [owner["uid"] for owner in metadata["ownerReferences"]],
    )


def test_only_a_controller_counts_as_owner() -> None:
    """A plain reference does not."""
    plain = owner_reference(OWNER, is_controller=False)
    assert None is controller_of(thing("a", {}, plain))
    assert is_owned_by(thing("a", {}, plain, owner_reference(OWNER)), OWNER)


def test_what_is_absent_has_a_default() -> None:
    """Missing fields, and fields of another type, give the default."""
    assert (1, 0, None) == (at({"a": []}, "a", "b", default=1), number_at({"a": "x"}, "a"), at({"a": {}}, "a", "b"))
    assert {"metadata": {"a": 1}} == with_metadata({"metadata": {"a": 0, "b": 2}}, a=1, b=None)
