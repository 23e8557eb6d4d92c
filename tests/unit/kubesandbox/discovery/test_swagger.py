"""OpenAPI v2, as JSON and as protobuf."""

from __future__ import annotations

import orjson

from kubesandbox.discovery.swagger import encode_swagger, swagger_document
from kubesandbox.protobuf.wire import fields
from pyverno.kube.json import JSONObject
from tests.unit.kubesandbox.discovery.test_openapi import API, references

DOCUMENT: JSONObject = orjson.loads(API.swagger(is_json=True))
CRON_TAB: JSONObject = {
    "type": "object",
    "description": "A table.",
    "required": ["spec"],
    "properties": {
        "spec": {"allOf": [{"$ref": "#/components/schemas/Spec"}], "description": "Wanted.", "default": {}},
        "port": {"oneOf": [{"type": "integer"}, {"type": "string"}]},
        "size": {"oneOf": [{"type": "string"}, {"type": "number"}]},
        "tags": {"type": "array", "items": {"type": "string", "enum": ["a"]}},
        "more": {"type": "object", "additionalProperties": True},
    },
    "x-kubernetes-group-version-kind": [{"group": "g", "version": "v1", "kind": "CronTab"}],
}


def message(data: bytes) -> dict[int, list[bytes]]:
    """Return the fields of a message by number."""
    found: dict[int, list[bytes]] = {}
    for number, _, value in fields(data):
        found.setdefault(number, []).append(value if isinstance(value, bytes) else bytes((value,)))
    return found


def test_definitions_refer_to_each_other_as_version_2_does() -> None:
    """The definitions include custom resources."""
    known = {f"#/definitions/{name}" for name in DOCUMENT["definitions"]}
    assert set() == references(DOCUMENT) - known
    names = {"io.k8s.api.core.v1.Pod", "io.k8s.api.apps.v1.Deployment", "io.ex.v1.Widget"}
    assert names <= set(DOCUMENT["definitions"])


def test_schemas_are_written_as_version_2_has_them() -> None:
    """A reference keeps its text alone; what may be a number or a text is a text."""
    fields_of = swagger_document({"CronTab": CRON_TAB}, "1.35")["definitions"]["CronTab"]["properties"]
    assert {
        "spec": {"$ref": "#/definitions/Spec", "description": "Wanted."},
        "port": {"type": "string", "format": "int-or-string"},
        "size": {"type": "string"},
        "tags": {"type": "array", "items": {"type": "string", "enum": ["a"]}},
        "more": {"type": "object", "additionalProperties": True},
    } == fields_of


def test_protobuf_has_the_fields_of_the_messages() -> None:
    """Names, types, references and marks are at the numbers that clients read."""
    whole = message(encode_swagger(swagger_document({"CronTab": CRON_TAB}, "1.35")))
    assert [b"2.0"] == whole[1]
    named = message(message(whole[9][0])[1][0])
    assert [b"CronTab"] == named[1]
    schema = message(named[2][0])
    assert ([b"A table."], [b"spec"], [b"\n\x06object"]) == (schema[4], schema[19], schema[22])
    properties = {each[1][0]: message(each[2][0]) for each in map(message, message(schema[25][0])[1])}
    assert [b"#/definitions/Spec"] == properties[b"spec"][1]
    assert [b"\x10\x01"] == properties[b"more"][21]
    mark = message(schema[31][0])
    assert b"x-kubernetes-group-version-kind" == mark[1][0]
    assert [{"group": "g", "version": "v1", "kind": "CronTab"}] == orjson.loads(message(mark[2][0])[2][0])
