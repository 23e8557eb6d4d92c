"""The compact store: compression is lossless, changes are detected, and memory is bounded."""

from __future__ import annotations

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyverno.controllers.reports.objects import BucketKey, ObjectStore, pack_uid, unpack_uid
from pyverno.kube.gvk import GVK, GVR
from pyverno.kube.json import JSONObject

GVR_PODS, POD = GVR("", "v1", "pods"), GVK("", "v1", "Pod")


def pod(number: int, image: str = "nginx", version: str = "1") -> JSONObject:
    """Return a Pod."""
    uid = str(uuid.UUID(int=number))
    metadata = {"name": f"web-{number}", "namespace": "team", "uid": uid, "resourceVersion": version}
    containers = [{"name": "c", "image": image, "env": [{"name": f"E{each}", "value": "x"} for each in range(40)]}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": containers}}


def without_version(body: JSONObject) -> JSONObject:
    """Return an object as it is stored."""
    kept = {key: value for key, value in body["metadata"].items() if key != "resourceVersion"}
    return {**body, "metadata": kept}


def test_every_object_comes_back_as_it_was_stored() -> None:
    """This holds before and after the compression dictionary of its kind is trained."""
    store, bodies = ObjectStore(), [pod(number) for number in range(20)]
    for body in bodies:
        store.put(GVR_PODS, POD, body)
    [bucket] = store.buckets()
    found = {
        entry.name if not entry.has_body else uid: store.body(GVR_PODS, entry) for uid, entry in bucket.entries.items()
    }
    assert {pack_uid(body["metadata"]["uid"]): without_version(body) for body in bodies} == found


def test_only_a_change_is_stored_again() -> None:
    """A new resource version or new managed fields alone are no change."""
    store = ObjectStore()
    assert store.put(GVR_PODS, POD, pod(1)) is not None
    again = pod(1, version="2")
    again["metadata"]["managedFields"] = [{"manager": "kubectl"}]
    assert store.put(GVR_PODS, POD, again) is None
    changed = store.put(GVR_PODS, POD, pod(1, image="other"))
    assert changed is not None
    assert "other" == (store.body(GVR_PODS, changed[2]) or {})["spec"]["containers"][0]["image"]


def test_a_change_makes_an_evaluation_out_of_date() -> None:
    """The digest of its reported results is kept."""
    store = ObjectStore()
    _, _, entry = store.put(GVR_PODS, POD, pod(1)) or pytest.fail("new")
    entry.context, entry.outcome, entry.reported = object(), object(), b"digest"
    store.put(GVR_PODS, POD, pod(1, image="other"))
    assert (None, b"digest") == (entry.context, entry.reported)


def test_beyond_its_budget_the_store_keeps_names_instead_of_bodies() -> None:
    """Changes are still detected, and removing objects frees their memory."""
    store = ObjectStore(max_bytes=600)
    entries = [(store.put(GVR_PODS, POD, pod(number)) or pytest.fail("new"))[2] for number in range(40)]
    assert store.bytes < 600 + 500
    bare = [number for number, entry in enumerate(entries) if not entry.has_body]
    assert bare
    assert [f"web-{number}" for number in bare] == [entries[number].name for number in bare]
    assert store.body(GVR_PODS, entries[bare[0]]) is None
    assert store.put(GVR_PODS, POD, pod(bare[0])) is None
    for number in range(40):
        store.remove(BucketKey(GVR_PODS, "team"), pack_uid(str(uuid.UUID(int=number))))
    assert (0, 0, []) == (store.bytes, store.count, list(store.buckets()))


def test_a_pod_takes_a_few_hundred_bytes() -> None:
    """Pods resemble each other, so they compress well."""
    store = ObjectStore()
    for number in range(200):
        store.put(GVR_PODS, POD, pod(number))
    assert store.bytes / store.count < 200


@given(st.one_of(st.uuids().map(str), st.text(max_size=40)))
def test_a_packed_uid_comes_back(uid: str) -> None:
    """Other uids survive as well, unless they have the length of a packed one."""
    packed = pack_uid(uid)
    assert len(packed) == 16 or unpack_uid(packed) == uid
    assert len(uid) != 36 or unpack_uid(packed) == uid
