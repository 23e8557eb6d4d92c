"""The patch of a status: it has only the differences, and leaves both documents unchanged."""

from __future__ import annotations

import pytest

from pyverno.controllers.runtime.statuspatch import status_patch
from pyverno.kube.json import JSONObject, encode

BEFORE, AFTER = "2024-01-01T00:00:00Z", "2024-06-01T00:00:00Z"


def condition(status: str, time: str) -> JSONObject:
    return {"type": "Ready", "status": status, "reason": "Any", "message": "", "lastTransitionTime": time}


def in_list(found: JSONObject) -> JSONObject:
    return {"conditions": [found]}


def in_condition_status(found: JSONObject) -> JSONObject:
    return {"conditionStatus": {"conditions": [found], "ready": True}}


@pytest.mark.parametrize("place", [in_list, in_condition_status])
def test_a_condition_that_did_not_change_keeps_its_time(place: object) -> None:
    """`lastTransitionTime` stays, so an equal status needs no patch."""
    assert callable(place)
    assert None is status_patch(place(condition("True", BEFORE)), place(condition("True", AFTER)))


def test_a_condition_that_changed_has_the_new_time() -> None:
    """The transition has its own time."""
    wanted = in_list(condition("False", AFTER))
    assert {"status": wanted} == status_patch(in_list(condition("True", BEFORE)), wanted)


@pytest.mark.parametrize("place", [in_list, in_condition_status])
def test_neither_status_is_changed(place: object) -> None:
    """Documents are read-only: callers compare the wanted status with watch events later."""
    assert callable(place)
    found, wanted = place(condition("True", BEFORE)), place(condition("True", AFTER))
    before = encode(found), encode(wanted)
    status_patch(found, wanted)
    assert before == (encode(found), encode(wanted))
