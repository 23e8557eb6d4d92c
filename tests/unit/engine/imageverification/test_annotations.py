"""Records in annotations: to what a seal binds them, and which a request may bring."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pyverno.engine.imageverification.annotations import (
    LEGACY_ANNOTATION,
    NO_RECORD,
    SCOPED_ANNOTATION,
    ImageRecord,
    ImageStatus,
    RecordedObject,
    RuleRecord,
    read_record,
    sealed,
    with_record,
    without_foreign,
)
from pyverno.engine.imageverification.recordkeys import NO_RECORD_KEYS, RecordKeys
from pyverno.kube.gvk import GVK
from pyverno.kube.json import JSONObject

KEYS = RecordKeys(b"k" * 32)
POD = GVK("", "v1", "Pod")
MADE = 1_700_000_000
CREATED = "2023-11-14T22:13:20Z"
IMAGES = {"docker.io/a:1": ImageRecord(ImageStatus.PASS, "sha256:1", "d")}


def _place(**fields: Any) -> RecordedObject:
    return RecordedObject(POD, "x", **{"name": "p", **fields})


def _pod(**metadata: Any) -> JSONObject:
    return {"kind": "Pod", "metadata": {"name": "p", "namespace": "x", **metadata}, "spec": {"a": 1}}


def _sealed(to: RecordedObject, keys: RecordKeys = KEYS) -> JSONObject:
    record = sealed(RuleRecord(IMAGES, "content", MADE), to, "/policy", "rule", keys)
    return with_record(_pod(uid="1", creationTimestamp=CREATED), "/policy", "rule", record)


STORED = _place(uid="1", created=CREATED)


@pytest.mark.parametrize("to", [STORED, _place(), _place(name="", prefix="p-")], ids=["uid", "name", "generated"])
def test_a_record_is_read_back(to: RecordedObject) -> None:
    """On creation the object has neither uid nor, with generateName, a name."""
    found = read_record(_sealed(to), STORED._replace(prefix=to.prefix), "/policy", "rule", KEYS)
    assert (IMAGES, "content") == (found.images, found.content)


@pytest.mark.parametrize("to", [STORED, _place()], ids=["uid", "name"])
@pytest.mark.parametrize(
    "change",
    [
        {"gvk": GVK("apps", "v1", "Pod")},
        {"gvk": GVK("", "v1", "Deployment")},
        {"namespace": "y"},
        {"policy": "/other"},
        {"policy": "x/policy"},
        {"rule": "other"},
        {"keys": RecordKeys(b"o" * 32)},
        {"keys": NO_RECORD_KEYS},
    ],
    ids=str,
)
def test_a_record_counts_for_what_it_was_made_for_only(to: RecordedObject, change: dict[str, Any]) -> None:
    """A copy of the annotation elsewhere claims nothing."""
    given = {"policy": "/policy", "rule": "rule", "keys": KEYS}
    place = STORED._replace(**{name: value for name, value in change.items() if name not in given})
    options = {**given, **{name: value for name, value in change.items() if name in given}}
    assert NO_RECORD is read_record(_sealed(to), place, **options)


@pytest.mark.parametrize(
    ("to", "place"),
    [
        (STORED, _place(uid="2", created=CREATED)),
        (STORED, _place(created=CREATED)),
        (_place(), _place(name="q", created=CREATED)),
        (_place(), _place(uid="1", created="2023-11-14T22:16:20Z")),
        (_place(), _place(uid="1", created="2023-11-14T22:10:20Z")),
        (_place(), _place(uid="1")),
        (_place(), _place(uid="1", created="soon")),
        (_place(name="", prefix="p"), _place(created=CREATED)),
    ],
)
def test_a_record_is_bound_to_one_object(to: RecordedObject, place: RecordedObject) -> None:
    """Another object of the name is another object: by its uid, or else by the time at which it was created."""
    assert NO_RECORD is read_record(_sealed(to), place, "/policy", "rule", KEYS)


def _changed(path: tuple[str, ...], value: Any) -> JSONObject:
    pod = _sealed(STORED)
    body = json.loads(pod["metadata"]["annotations"][SCOPED_ANNOTATION])
    at = body
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    return _with(json.dumps(body))


def _with(text: Any) -> JSONObject:
    return _pod(uid="1", creationTimestamp=CREATED, annotations={SCOPED_ANNOTATION: text})


RULE = ("policies", "/policy", "rule")
SEAL = ("seals", "/policy", "rule")
IMAGE = (*SEAL, "images", "docker.io/a:1")


@pytest.mark.parametrize(
    "pod",
    [
        _changed((*RULE, "docker.io/evil:1"), "pass"),
        _changed((*RULE, "docker.io/a:1"), "skip"),
        _changed((*RULE, "docker.io/a:1"), None),
        _changed(RULE, {"docker.io/evil:1": "pass"}),
        _changed(RULE, ["docker.io/a:1"]),
        _changed(("policies",), None),
        _changed(("seals",), None),
        _changed(SEAL, []),
        _changed((*SEAL, "content"), "other"),
        _changed((*SEAL, "content"), None),
        _changed((*SEAL, "made"), MADE + 1),
        _changed((*SEAL, "made"), "1"),
        _changed((*SEAL, "uid"), ""),
        _changed((*SEAL, "key"), ""),
        _changed((*SEAL, "mac"), ""),
        _changed((*SEAL, "mac"), "é"),
        _changed((*SEAL, "mac"), 1),
        _changed(IMAGE, ["sha256:2", "d"]),
        _changed(IMAGE, ["sha256:1", ""]),
        _changed(IMAGE, ["sha256:1"]),
        _changed(IMAGE, [1, 2]),
        _changed(IMAGE, None),
        _changed(("version",), 2),
        *map(_with, ["", "null", "[]", "{", '"\\ud800"', 1, None, [], "[" * 9999]),
        {"kind": "Pod"},
        {"metadata": {"annotations": []}},
    ],
    ids=lambda pod: str(pod)[:20],
)
def test_a_changed_record_is_none(pod: JSONObject) -> None:
    """Each field is under the seal, and any text may stand in an annotation."""
    assert NO_RECORD is read_record(pod, STORED, "/policy", "rule", KEYS)


def test_a_request_brings_no_record_of_its_own() -> None:
    """On creation every record is foreign, the sealed one of another object too."""
    pod = _sealed(STORED)
    found = [without_foreign(pod, old, STORED, KEYS) for old in (None, _pod(uid="1"), {**pod, "spec": {"a": 2}})]
    assert [_pod(uid="1", creationTimestamp=CREATED)] * 3 == found


@pytest.mark.parametrize("keys", [RecordKeys(b"o" * 32), NO_RECORD_KEYS])
def test_a_record_that_our_keys_do_not_seal_is_removed(keys: RecordKeys) -> None:
    """It may have been in the object before."""
    pod = _sealed(STORED)
    assert _pod(uid="1", creationTimestamp=CREATED) == without_foreign(pod, pod, STORED, keys)


def test_a_record_of_ours_stays_in_the_object() -> None:
    """An update of labels changes no annotation; what was added to the record is removed."""
    pod = _sealed(STORED)
    labelled = {**pod, "metadata": {**pod["metadata"], "labels": {"a": "b"}}, "status": {"phase": "Running"}}
    assert without_foreign(labelled, pod, STORED, KEYS) is labelled
    annotations = pod["metadata"]["annotations"]
    body = json.loads(annotations[SCOPED_ANNOTATION])
    body["policies"]["/other"] = {"rule": {"docker.io/evil:1": "pass"}}
    legacy = json.dumps({**json.loads(annotations[LEGACY_ANNOTATION]), "docker.io/evil:1": "pass"})
    added = {**annotations, SCOPED_ANNOTATION: json.dumps(body), LEGACY_ANNOTATION: legacy}
    changed = {**labelled, "metadata": {**labelled["metadata"], "annotations": added}}
    assert labelled == without_foreign(changed, pod, STORED, KEYS)


def test_other_annotations_are_left_alone() -> None:
    """An object without a record is the same object."""
    pod = _pod(annotations={"a": "b"})
    assert without_foreign(pod, None, STORED, KEYS) is pod


def test_an_empty_record_takes_the_annotation_away() -> None:
    """The annotation for people keeps what other rules said."""
    pod = with_record(_sealed(STORED), "/policy", "rule", NO_RECORD)
    assert {LEGACY_ANNOTATION: '{"docker.io/a:1":"pass"}'} == pod["metadata"]["annotations"]
