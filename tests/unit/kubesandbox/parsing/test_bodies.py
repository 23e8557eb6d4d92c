"""Request bodies: media types, duplicate fields and malformed input."""

from __future__ import annotations

import pytest

from kubesandbox.parsing.bodies import read_body
from pyverno.kube.status import StatusError


def refused(data: bytes, content_type: str = "application/json") -> StatusError:
    """Return the error of a body where a ConfigMap is expected."""
    with pytest.raises(StatusError) as caught:
        read_body(data, content_type, kind="ConfigMap")
    return caught.value


@pytest.mark.parametrize(
    ("data", "content_type"),
    [
        (b'{"kind": "ConfigMap"}', "application/json"),
        (b'{"kind": "ConfigMap"}', ""),
        (b'{"kind": "ConfigMap"}', "application/json; charset=utf-8"),
        (b"kind: ConfigMap", "application/yaml"),
    ],
)
def test_json_and_yaml_are_read(data: bytes, content_type: str) -> None:
    """A body without a media type is read as JSON."""
    assert {"kind": "ConfigMap"} == read_body(data, content_type, kind="ConfigMap").value


def test_duplicate_fields_are_reported_with_their_path() -> None:
    """The last value is used, and a warning has the path."""
    data = b'{"spec": {"y": 1, "list": [{"a": 1, "a": 2}], "y": 2}, "kind": "x", "kind": "z"}'
    body = read_body(data, "application/json", kind="Foo")
    assert ('duplicate field "kind"', 'duplicate field "spec.y"', 'duplicate field "spec.list[0].a"') == body.duplicates
    assert ("z", 2) == (body.value["kind"], body.value["spec"]["y"])


def test_texts_that_look_like_keys_are_no_duplicates() -> None:
    """The quick look at the bytes may be wrong, the answer is not."""
    assert () == read_body(b'{"a": "\\":\\":\\":"}', "application/json", kind="Foo").duplicates


def test_duplicate_keys_of_yaml_are_reported() -> None:
    """The warning has the line, as that of the API server has."""
    body = read_body(b"a: 1\na: 2\n", "application/yaml", kind="Foo")
    assert {"a": 2} == body.value
    assert body.duplicates[0].startswith("yaml: unmarshal errors:\n  line 2:")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            b'{"apiVersion":"v1"',
            "the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse "
            'error: unexpected end of JSON input ({"apiVersion":"v1")',
        ),
        (
            b'{"apiVersion":1}',
            "the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse "
            'error: json: cannot unmarshal number into Go struct field .apiVersion of type string ({"apiVersion":1})',
        ),
        (b"", "(<empty>)"),
        (b"[]", "(5b5d)"),
        (b'{"a":"' + b"x" * 100, '({"a":"xxxxxxxxxxxxxxxxxxxxxxxx ...)'),
    ],
)
def test_what_can_not_be_read_is_a_bad_request(data: bytes, message: str) -> None:
    """The text ends with a summary of the body."""
    error = refused(data)
    assert (400, "BadRequest") == (error.status, error.reason)
    assert error.message.endswith(message)


def test_other_media_types_are_unsupported() -> None:
    """The error lists the supported media types."""
    error = refused(b"a: b", "text/plain")
    assert (415, "UnsupportedMediaType") == (error.status, error.reason)
    assert error.message.endswith("application/json, application/yaml, application/vnd.kubernetes.protobuf")


def test_random_bytes_are_refused_with_a_status() -> None:
    """Any bytes give a Status, never an internal error."""
    for data in (b"\xff\xfe\x00", b"\x00" * 50, b"{" * 5000, b"[" * 100_000, b"nul", b"1e999x", b'"x'):
        assert 400 == refused(data).status
