"""The small modules: values, URLs, random texts, image references, regular expressions, structs."""

from typing import Any

import pytest

from pyverno.errors import EvaluationError, ValueSyntaxError
from pyverno.lang.cel.checking.structs import MutationTypes, misnamed_types
from pyverno.lang.cel.gourl import parse_request_uri, parse_url
from pyverno.lang.cel.json_values import to_json
from pyverno.lang.cel.libraries.kyverno.images import parse_image
from pyverno.lang.cel.presets import kubernetes_environment
from pyverno.lang.cel.regex import compile_pattern
from pyverno.lang.cel.scalars import Duration, Timestamp, Uint
from pyverno.lang.cel.types import parse_signature, parse_type
from pyverno.lang.cel.values import Optional, StructValue, compare, equals, is_zero, map_find, new_map, type_name


@pytest.mark.parametrize(
    ("one", "two", "expected"),
    [
        (1, 1.0, True), (1, True, False), (0, False, False), (Uint(1), 1, True), ("1", 1, False), (None, False, False),
        ([1, [2]], [1.0, [2.0]], True), ({"a": [1]}, {"a": [1.0]}, True), ({"a": 1}, {"a": 1, "b": 2}, False),
        (float("nan"), float("nan"), False), (Duration(1), Duration(1), True), (Timestamp(1), Timestamp(1, 60), True),
        (Optional(1), Optional(1.0), True), (Optional(), Optional(), True), (b"a", "a", False),
    ],
)  # fmt: skip
def test_equality_is_cels(one: Any, two: Any, expected: bool) -> None:
    """Numbers compare by value, everything else by type and value."""
    assert equals(one, two) is expected


def test_order_exists_only_within_ordered_types() -> None:
    """Numbers of all types are ordered together; other types only with themselves."""
    assert [compare(1, 2.5), compare(Uint(3), 3), compare("b", "a"), compare(True, False)] == [-1, 0, 1, 1]
    assert compare(float("nan"), 1) == 2
    for one, two in ((1, "a"), (None, None), ([1], [1]), (True, 1)):
        with pytest.raises(EvaluationError):
            compare(one, two)


def test_maps_keep_bools_and_numbers_apart() -> None:
    """`true` and 1 are two keys; 1, 1u and 1.0 are one."""
    mixed = new_map([(1, "number"), (True, "bool")])
    assert [map_find(mixed, key) for key in (1, True, 1.0, Uint(1))] == ["number", "bool", "number", "number"]
    with pytest.raises(EvaluationError, match="unsupported key type"):
        new_map([(1.5, "x")])


def test_every_type_has_a_zero_value() -> None:
    """Each type has its zero value."""
    assert all(map(is_zero, (None, False, 0, Uint(0), 0.0, "", b"", [], {}, Duration(0), Optional())))
    assert not any(map(is_zero, (True, 1, "a", [0], Duration(1), Optional(1), Timestamp(0))))


@pytest.mark.parametrize(
    ("text", "host", "port", "path", "query"),
    [
        ("https://example.com:8080/a/b?x=1&x=2", "example.com:8080", "8080", "/a/b", {"x": ["1", "2"]}),
        ("https://[::1]:80/a%20b", "[::1]:80", "80", "/a%20b", {}),
        ("/path/only?q", "", "", "/path/only", {"q": [""]}),
        ("http://user:pass@host/", "host", "", "/", {}),
        ("https://x?a=%zz&b=1", "x", "", "", {"b": ["1"]}),
    ],
)
def test_urls_are_read_as_go_reads_them(text: str, host: str, port: str, path: str, query: dict[str, Any]) -> None:
    """Host, port, escaped path and query."""
    url = parse_request_uri(text)
    assert (url.host, url.port, url.escaped_path, url.query) == (host, port, path, query)


@pytest.mark.parametrize(
    "text",
    ["", "x", "http://a\\@169.254.169.254/", "http://a b/", "http://x:8o/", "http://[::1", ":x", "/a%zz", "http://x\n"],
)
def test_what_go_refuses_is_no_url(text: str) -> None:
    """Relative texts, control characters, bad ports, hosts and escapes."""
    with pytest.raises(ValueSyntaxError):
        parse_request_uri(text)


def test_a_fragment_is_split_off() -> None:
    """`parse_url` knows fragments, a request URI does not."""
    assert (parse_url("/a#b%20c").path, parse_url("/a#b%20c").fragment) == ("/a", "b c")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("nginx", ("index.docker.io", "library/nginx", "latest", "")),
        ("ghcr.io/a/b:v1", ("ghcr.io", "a/b", "v1", "")),
        ("localhost:5000/a", None),
        ("localhost:5000/ab:x", ("localhost:5000", "ab", "x", "")),
        ("docker.io/nginx", ("index.docker.io", "library/nginx", "latest", "")),
        (f"nginx:1@sha256:{'a' * 64}", ("index.docker.io", "library/nginx", "", f"sha256:{'a' * 64}")),
        ("nginx:", None), ("UPPER/x", None), ("", None), ("a@b", None),
    ],
)  # fmt: skip
def test_images_are_taken_apart(text: str, expected: tuple[str, ...] | None) -> None:
    """Registry, repository, tag and digest, or an error."""
    if expected is None:
        with pytest.raises(EvaluationError, match="could not parse reference"):
            parse_image(text)
        return
    image = parse_image(text)
    assert (image.registry, image.repository, image.tag, image.digest) == expected


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("^a\\.b$", "a.b", True), ("^a\\.b$", "axb", False), ("^a", "ba", False), ("a$", "ba", True),
        ("b", "abc", True),
        ("a.c", "abc", True), ("", "x", True), ("^$", "", True), ("\\d", "d", False), ("a\\$", "a$", True),
    ],
)  # fmt: skip
def test_patterns_that_are_texts_are_still_patterns(pattern: str, text: str, expected: bool) -> None:
    """The fast test for literal patterns answers like RE2."""
    compiled = compile_pattern(pattern)
    assert compiled.found(text) is expected
    assert (compiled.search(text) is not None) is expected


def test_long_patterns_are_refused() -> None:
    """A pattern has at most 1 KiB."""
    with pytest.raises(EvaluationError, match="longer than"):
        compile_pattern("a" * 1_025)


def test_mutation_types_take_any_field_and_know_their_path() -> None:
    """`Object{}` builds structs; type names must follow field paths; JSONPatch has four fields."""
    environment = kubernetes_environment(mutation=True)
    value = environment.compile("Object{spec: Object.spec{replicas: 3, ?x: optional.none()}}").evaluate({})
    assert to_json(value) == {"spec": {"replicas": 3}}
    assert misnamed_types(value) == []
    assert len(misnamed_types(StructValue("Object", {"a": [StructValue("Object.b", {})]}))) == 1
    patch = environment.compile("[JSONPatch{op: 'add', path: '/a', value: 1}]")
    assert str(patch.type) == "list(JSONPatch)"
    assert to_json(patch.evaluate({})) == [{"op": "add", "path": "/a", "value": 1}]
    with pytest.raises(EvaluationError, match="unexpected type int for JSONPatchType 'op' field"):
        MutationTypes().construct("JSONPatch", {"op": 1})


def test_signatures_are_read_from_text() -> None:
    """Receivers, parameters, variables, optionals and objects."""
    signature = parse_signature("map(K, V).(K, optional(V)) -> list(object(a.B))")
    assert str(signature) == "map(K, V).(K, optional_type(V)) -> list(a.B)"
    assert signature.member
    with pytest.raises(ValueError, match="unreadable type"):
        parse_type("list(int) x")


def test_values_know_their_type() -> None:
    """Types have the names that `type(x)` shows."""
    names = [
        type_name(value) for value in (Timestamp(0), Duration(0), Optional(), StructValue("Object", {}), new_map([]))
    ]
    assert names == ["google.protobuf.Timestamp", "google.protobuf.Duration", "optional_type", "Object", "map"]
