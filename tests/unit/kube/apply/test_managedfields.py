"""Field ownership as recorded in `managedFields`."""

from __future__ import annotations

import pytest

from pyverno.kube.apply.fieldset import FieldSet
from pyverno.kube.apply.managedfields import (
    Claim,
    Manager,
    bare,
    capped,
    claims_of,
    claims_of_update,
    settled,
    with_claims,
)
from pyverno.kube.json import JSON, JSONObject

ONE = Manager("one", "Update", "v1", "")
TWO = Manager("two", "Apply", "", "")
STATUS = Manager("one", "Update", "v1", "status")
FIELDS = FieldSet.of([("f:data", "f:a")])


def entry(**changes: JSON) -> JSONObject:
    """Return an entry of `managedFields`."""
    found = {
        "manager": "one",
        "operation": "Update",
        "apiVersion": "v1",
        "time": "2026-01-01T00:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:data": {"f:a": {}}},
    }
    return {**found, **changes}


def body(*entries: JSON) -> JSONObject:
    """Return an object with these entries."""
    return {"metadata": {"name": "x", "managedFields": list(entries)}, "data": {"a": "b"}}


def test_entries_are_read_and_written() -> None:
    """Apply entries come first, then order is by time and name; a subresource is part of a manager's identity."""
    found = body(entry(subresource="status"), entry(), entry(manager="two", operation="Apply"))
    claims = claims_of(found)
    assert {ONE, TWO, STATUS} == set(claims)
    assert Claim(FIELDS, "v1", "2026-01-01T00:00:00Z") == claims[ONE]
    written = with_claims(bare(found), claims)["metadata"]["managedFields"]
    assert [("two", ""), ("one", ""), ("one", "status")] == [
        (item["manager"], item.get("subresource", "")) for item in written
    ]
    assert entry() == written[1]


@pytest.mark.parametrize(
    "odd",
    [
        "x",
        entry(operation="Other"),
        entry(apiVersion=""),
        entry(fieldsType=""),
        entry(manager=1),
        entry(fieldsV1=[]),
        entry(fieldsV1={"x": {}}),
    ],
)
def test_one_bad_entry_spoils_them_all(odd: JSON) -> None:
    """As in an API server, one malformed entry discards the whole list."""
    assert {} == claims_of(body(entry(), odd))


def test_an_applier_is_the_same_in_every_version() -> None:
    """The version of its last configuration is kept beside."""
    (manager,) = claims_of(body(entry(operation="Apply", apiVersion="v2")))
    assert Manager("one", "Apply", "", "") == manager


def test_managers_are_named_for_people() -> None:
    """The form is the one that conflicts show."""
    assert ['"one" using v1', '"two"', '"one" with subresource "status" using v1'] == [str(ONE), str(TWO), str(STATUS)]


def test_an_update_may_bring_its_own_entries() -> None:
    """The entries stay for a subresource or a missing list; a list with one empty entry resets them."""
    before, after = body(entry()), body(entry(manager="two", operation="Apply"))
    assert {TWO} == set(claims_of_update(before, after, ""))
    assert {ONE} == set(claims_of_update(before, after, "status"))
    assert {ONE} == set(claims_of_update(before, {"metadata": {"name": "x"}}, ""))
    assert {} == claims_of_update(before, body({}), "")


def test_an_object_without_claims_has_no_list() -> None:
    """The key `managedFields` is removed, and no empty metadata is added."""
    assert {"metadata": {"name": "x"}, "data": {"a": "b"}} == with_claims(body(entry()), {})
    assert {"a": 1} == with_claims({"a": 1}, {})


def test_the_oldest_updaters_share_an_entry() -> None:
    """Ten are kept; appliers do not count, and versions do not mix."""
    claims = {
        Manager(f"m{number:02}", "Update", "v1" if number < 6 else "v2", ""): Claim(
            FieldSet.of([(f"f:{number}",)]), "v1" if number < 6 else "v2", f"2026-01-01T00:00:{number:02}Z"
        )
        for number in range(12)
    }
    kept = capped({**claims, TWO: Claim(FIELDS, "v1")})
    assert 10 == sum(manager.operation == "Update" for manager in kept)
    ancient = kept[Manager("ancient-changes", "Update", "v1", "")]
    assert {("f:0",), ("f:1",), ("f:2",)} == set(ancient.fields.paths())
    assert "2026-01-01T00:00:02Z" == ancient.time
    assert TWO in kept
    assert claims == capped({key: claims[key] for key in list(claims)[:10]}) | claims


def test_new_times_alone_are_no_change() -> None:
    """If only times differ, the earlier object is returned."""
    before, later = body(entry()), body(entry(time="2027-01-01T00:00:00Z"))
    assert before is settled(before, later)
    assert later is settled(None, later)
    changed = {**later, "data": {"a": "c"}}
    assert changed is settled(before, changed)
    taken = body(entry(manager="two"))
    assert taken is settled(before, taken)
