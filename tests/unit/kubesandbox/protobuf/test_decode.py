"""Protobuf bodies become the JSON that Go would write."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubesandbox.protobuf import decode
from pyverno.kube.json import JSON
from pyverno.kube.status import StatusError
from tests.property.profile import examples


def varint(value: int) -> bytes:
    """Write a number."""
    value &= 2**64 - 1
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def field(number: int, value: int | bytes | str | float) -> bytes:
    """Write a field."""
    if isinstance(value, float):
        return varint(number << 3 | 1) + struct.pack("<d", value)
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def envelope(api_version: str, kind: str, raw: bytes, *more: bytes) -> bytes:
    """Write a whole body."""
    return b"k8s\0" + field(1, field(1, api_version) + field(2, kind)) + field(2, raw) + b"".join(more)


def body(api_version: str, kind: str, *fields: bytes) -> JSON:
    """Read an object, its head left out."""
    found = decode(envelope(api_version, kind, b"".join(fields)))
    assert (api_version, kind) == (found.pop("apiVersion"), found.pop("kind"))
    return found


META = field(1, field(1, "web"))
TIME = field(1, 1_700_000_000) + field(2, 5_000_000)


def test_metadata_is_read() -> None:
    """Texts, maps, lists and times; an unset time of creation is left out."""
    meta = (
        field(1, "web")
        + field(2, "")
        + field(7, 0)
        + field(8, b"")
        + field(9, TIME)
        + field(10, 0)
        + field(11, field(1, "b") + field(2, "2"))
        + field(11, field(1, "a"))
        + field(14, "x/y")
        + field(14, "z")
    )
    assert {
        "metadata": {
            "name": "web",
            "deletionTimestamp": "2023-11-14T22:13:20Z",
            "deletionGracePeriodSeconds": 0,
            "labels": {"b": "2", "a": ""},
            "finalizers": ["x/y", "z"],
        }
    } == body("v1", "ConfigMap", field(1, meta))


def test_zeros_behind_pointers_stay() -> None:
    """`replicas: 0` is an order, `paused: false` is nothing."""
    spec = field(1, 0) + field(7, 0) + field(6, 0)
    assert {"metadata": {"name": "web"}, "spec": {"replicas": 0, "revisionHistoryLimit": 0}} == body(
        "apps/v1", "Deployment", META, field(2, spec)
    )


def test_embedded_messages_stand_among_their_parents_fields() -> None:
    """A volume's source has no name of its own."""
    secret = field(6, field(1, "s") + field(3, 420))
    volume = field(1, "v") + field(2, secret)
    assert {"spec": {"volumes": [{"name": "v", "secret": {"secretName": "s", "defaultMode": 420}}]}} == body(
        "v1", "Pod", field(2, field(1, volume))
    )


def test_special_types_are_written_as_json_has_them() -> None:
    """Quantities, numbers or texts, bytes, micro times, embedded JSON."""
    port = field(3, 80) + field(4, field(1, 1) + field(2, 0) + field(3, "web"))
    other = field(3, 81) + field(4, field(1, 0) + field(2, 8080) + field(3, ""))
    assert {"spec": {"ports": [{"port": 80, "targetPort": "web"}, {"port": 81, "targetPort": 8080}]}} == body(
        "v1", "Service", field(2, field(1, port) + field(1, other))
    )
    assert {"spec": {"hard": {"cpu": "1", "pods": "0"}}} == body(
        "v1",
        "ResourceQuota",
        field(2, field(1, field(1, "cpu") + field(2, field(1, "1"))) + field(1, field(1, "pods"))),
    )
    assert {"data": {"k": "/wA="}, "type": "Opaque"} == body(
        "v1", "Secret", field(2, field(1, "k") + field(2, b"\xff\0")), field(3, "Opaque")
    )
    assert {"spec": {"renewTime": "2023-11-14T22:13:20.005000Z", "leaseDurationSeconds": 15}} == body(
        "coordination.k8s.io/v1", "Lease", field(2, field(2, 15) + field(4, TIME))
    )
    assert {"data": {"a": [1]}, "revision": 3} == body(
        "apps/v1", "ControllerRevision", field(2, field(1, '{"a":[1]}')), field(3, 3)
    )
    managed = field(1, "m") + field(6, "FieldsV1") + field(7, field(1, '{"f:a":{}}'))
    assert {
        "metadata": {"managedFields": [{"manager": "m", "fieldsType": "FieldsV1", "fieldsV1": {"f:a": {}}}]}
    } == body("v1", "Namespace", field(1, field(17, managed)))


def test_bare_lists_have_no_name() -> None:
    """The extras of a user are such lists."""
    extra = field(5, field(1, "scopes") + field(2, field(1, "a") + field(1, "b")))
    assert {"spec": {"user": "u", "extra": {"scopes": ["a", "b"]}}} == body(
        "authorization.k8s.io/v1", "SubjectAccessReview", field(2, field(3, "u") + extra)
    )


def test_numbers_have_signs() -> None:
    """Two's complement in 64 bits."""
    assert {"value": -5} == body("scheduling.k8s.io/v1", "PriorityClass", field(2, -5))


def test_a_list_of_numbers_may_be_packed() -> None:
    """The packed and the unpacked form decode alike."""
    loose = field(2, field(14, field(4, 1) + field(4, 2)))
    packed = field(2, field(14, field(4, b"\x01\x02")))
    assert body("v1", "Pod", loose) == body("v1", "Pod", packed)
    assert {"spec": {"securityContext": {"supplementalGroups": [1, 2]}}} == body("v1", "Pod", loose)


def test_options_have_the_version_of_what_they_are_about() -> None:
    """Typed clients send DeleteOptions of apps/v1."""
    assert {"gracePeriodSeconds": 0, "propagationPolicy": "Background"} == body(
        "apps/v1", "DeleteOptions", field(1, 0) + field(4, "Background")
    )


def test_a_message_that_comes_in_parts_is_one() -> None:
    """Protobuf merges the parts of a repeated message field."""
    assert {"metadata": {"name": "a", "namespace": "b"}} == body(
        "v1", "ConfigMap", field(1, field(1, "a")), field(1, field(3, "b"))
    )


def test_json_in_an_envelope_is_json() -> None:
    """The envelope can carry other forms."""
    data = envelope("v1", "ConfigMap", b'{"data":{"a":"b"}}', field(4, "application/json"))
    assert {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}} == decode(data)


@pytest.mark.parametrize(
    ("data", "status", "text"),
    [
        (b"{}", 400, "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"),
        (b"k8s\0\xff", 400, "unexpected EOF"),
        (b"k8s\0" + b"\xff" * 12, 400, "proto: integer overflow"),
        (b"k8s\0\x03", 400, "proto: illegal wireType 3"),
        (b"k8s\0\x00\x00", 400, "proto: illegal tag 0"),
        (b"k8s\0" + field(9, "x"), 400, "unknown field 9 of the envelope"),
        (envelope("v1", "Pod", field(99, 1)), 400, "unknown field 99 of core/v1.Pod"),
        (envelope("v1", "Pod", field(1, 1)), 400, "proto: wrong wireType = 0 for a message or text"),
        (envelope("apps/v1", "Deployment", field(2, field(1, "x"))), 400, "proto: wrong wireType = 2 for a number"),
        (envelope("v1", "Pod", b"", field(3, "gzip")), 400, "unknown content encoding `gzip`"),
        (envelope("v1", "Pod", b"", field(4, "text/x")), 400, ""),
        (envelope("x.io/v1", "Widget", b""), 415, "accepted media types include: application/json, application/yaml"),
    ],
)
def test_what_can_not_be_read_is_refused(data: bytes, status: int, text: str) -> None:
    """The error has a code and a reason; no part of a body is dropped silently."""
    with pytest.raises(StatusError) as caught:
        decode(data)
    assert status == caught.value.status
    assert text in str(caught.value)


def test_a_time_far_away_is_refused() -> None:
    """Times beyond the supported years are errors."""
    meta = field(1, field(9, field(1, 2**60)))
    with pytest.raises(StatusError, match="a time is outside"):
        decode(envelope("v1", "Pod", meta))


KINDS = st.sampled_from([("v1", "Pod"), ("apps/v1", "Deployment"), ("v1", "Secret"), ("v1", "DeleteOptions")])


@settings(max_examples=examples(300), deadline=None)
@given(KINDS, st.binary(max_size=200))
def test_random_bytes_are_read_or_refused(kind: tuple[str, str], raw: bytes) -> None:
    """Random bytes give an object or the typed error."""
    for data in (raw, b"k8s\0" + raw, envelope(*kind, raw)):
        try:
            assert isinstance(decode(data), dict)
        except StatusError as error:
            assert error.status in (400, 415)


NESTED = st.recursive(
    st.builds(field, st.integers(1, 30), st.one_of(st.integers(0, 2**64 - 1), st.text(max_size=5), st.floats())),
    lambda inner: st.builds(lambda number, parts: field(number, b"".join(parts)), st.integers(1, 30), st.lists(inner)),
    max_leaves=20,
)


@settings(max_examples=examples(300), deadline=None)
@given(KINDS, st.lists(NESTED, max_size=4))
def test_well_formed_nonsense_is_read_or_refused(kind: tuple[str, str], parts: list[bytes]) -> None:
    """Fields that are none of the message's, of the wrong type, or in the wrong place."""
    try:
        assert isinstance(decode(envelope(*kind, b"".join(parts))), dict)
    except StatusError as error:
        assert 400 == error.status
