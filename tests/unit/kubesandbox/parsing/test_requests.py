"""Reading requests: paths, verbs and options."""

from __future__ import annotations

import pytest

from kubesandbox.parsing.requests import DeleteOptions, ListOptions, WriteOptions, parse_target
from kubesandbox.parsing.urls import Query
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("GET", "/api/v1/pods", ("list", "", "v1", "", "pods", "", "")),
        ("GET", "/api/v1/namespaces/x/pods", ("list", "", "v1", "x", "pods", "", "")),
        ("GET", "/api/v1/namespaces/x/pods/a", ("get", "", "v1", "x", "pods", "a", "")),
        ("POST", "/api/v1/namespaces/x/pods", ("create", "", "v1", "x", "pods", "", "")),
        ("DELETE", "/api/v1/namespaces/x/pods", ("deletecollection", "", "v1", "x", "pods", "", "")),
        ("GET", "/api/v1/namespaces/x", ("get", "", "v1", "x", "namespaces", "x", "")),
        ("PUT", "/api/v1/namespaces/x/finalize", ("update", "", "v1", "x", "namespaces", "x", "finalize")),
        ("PUT", "/api/v1/namespaces/x/status", ("update", "", "v1", "x", "namespaces", "x", "status")),
        ("GET", "/api/v1/namespaces/x/status/y", ("get", "", "v1", "x", "status", "y", "")),
        ("PATCH", "/apis/a.b/v2/foos/f/status", ("patch", "a.b", "v2", "", "foos", "f", "status")),
        ("GET", "/api/v1/watch/pods", ("watch", "", "v1", "", "pods", "", "")),
        ("GET", "/api/v1/nodes/n/m", ("get", "", "v1", "", "nodes", "n", "m")),
    ],
)
def test_paths_of_resources_name_verb_place_and_object(method: str, path: str, expected: tuple[str, ...]) -> None:
    """As the API server's RequestInfo splits them."""
    target = parse_target(method, path)
    found = (target.verb, target.group, target.version, target.namespace, target.plural, target.name)
    assert target.is_resource
    assert expected == (*found, target.subresource)


@pytest.mark.parametrize("path", ["/", "/healthz", "/api", "/api/v1", "/apis/apps", "/apis/apps/v1", "/openapi/v3"])
def test_other_paths_are_no_resources(path: str) -> None:
    """Their verb is the method in small letters."""
    target = parse_target("GET", path)
    assert (False, "get", path) == (target.is_resource, target.verb, target.path)


def test_what_follows_a_subresource_is_kept() -> None:
    """Proxies get it as their path."""
    assert "a/b" == parse_target("GET", "/api/v1/nodes/n/proxy/a/b").rest


@pytest.mark.parametrize(
    ("query", "kind", "message"),
    [
        ({"dryRun": "x"}, "CreateOptions", 'dryRun: Unsupported value: ["x"]: supported values: "All"'),
        ({"force": "true"}, "PatchOptions", "force: Forbidden: may not be specified for non-apply patch"),
        ({"fieldManager": "a" * 129}, "UpdateOptions", "fieldManager: Too long: may not be more than 128 bytes"),
        (
            {"fieldManager": "a\tb"},
            "UpdateOptions",
            'fieldManager: Invalid value: "a\\tb": invalid character U+0009 (at position 1)',
        ),
        ({"dryRun": ""}, "CreateOptions", 'dryRun: Unsupported value: [""]: supported values: "All"'),
        (Query.parse("dryRun=&dryRun=All"), "CreateOptions", 'dryRun: Unsupported value: ["","All"]'),
        (
            {"fieldValidation": "y"},
            "CreateOptions",
            'fieldValidation: Unsupported value: "y": supported values: "", "Ignore", "Strict", "Warn"',
        ),
    ],
)
def test_options_of_writes_that_can_not_be_are_invalid(query: dict[str, str], kind: str, message: str) -> None:
    """The answer is 422 with the texts of meta.k8s.io."""
    with pytest.raises(StatusError) as caught:
        WriteOptions.from_query(query, kind)
    assert 422 == caught.value.status
    assert caught.value.message.startswith(f'{kind}.meta.k8s.io "" is invalid: {message}')


def test_dry_runs_may_be_requested_twice() -> None:
    """A repeated `dryRun=All` counts once."""
    assert WriteOptions.from_query(Query.parse("dryRun=All&dryRun=All"), "CreateOptions").dry_run


def test_only_lists_can_be_watched() -> None:
    """Unless the path is one of the older ones."""
    verbs = [
        parse_target("GET", path, is_watch=True).verb
        for path in ("/api/v1/pods", "/api/v1/nodes/n", "/api/v1/watch/nodes/n")
    ]
    assert ["watch", "get", "watch"] == verbs


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"gracePeriodSeconds": "x"}, "string into Go struct field DeleteOptions.gracePeriodSeconds of type int64"),
        ({"gracePeriodSeconds": 1.5}, "number 1.5 into Go struct field DeleteOptions.gracePeriodSeconds of type int64"),
        ({"dryRun": "All"}, "string into Go struct field DeleteOptions.dryRun of type []string"),
        ({"preconditions": []}, "array into Go struct field DeleteOptions.preconditions of type v1.Preconditions"),
    ],
)
def test_options_of_deletions_have_types(body: JSONObject, message: str) -> None:
    """The errors have the texts of Go's decoder."""
    with pytest.raises(StatusError) as caught:
        DeleteOptions.from_json(body)
    assert (400, f"json: cannot unmarshal {message}") == (caught.value.status, caught.value.message)


def test_apply_needs_a_manager() -> None:
    """Without one the fields would have no owner."""
    with pytest.raises(StatusError, match="fieldManager: Required value: is required for apply patch"):
        WriteOptions.from_query({}, "PatchOptions", is_apply=True)


def test_options_that_were_not_given_are_not_shown() -> None:
    """Webhooks see the client's options only; `fieldValidation` defaults to warnings."""
    options = WriteOptions.from_query({"fieldManager": "me"}, "CreateOptions")
    assert {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1", "fieldManager": "me"} == options.to_json(
        "CreateOptions"
    )
    assert "Warn" == options.validation


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"limit": ""}, 'strconv.ParseInt: parsing "": invalid syntax'),
        ({"limit": "x"}, 'strconv.ParseInt: parsing "x": invalid syntax'),
        ({"limit": "9" * 30}, f'strconv.ParseInt: parsing "{"9" * 30}": value out of range'),
        ({"resourceVersionMatch": "Exact"}, "resourceVersionMatch is forbidden unless resourceVersion is provided"),
        (
            {"resourceVersionMatch": "Exact", "resourceVersion": "0"},
            'resourceVersionMatch "exact" is forbidden for resourceVersion "0"',
        ),
        ({"resourceVersionMatch": "Foo", "resourceVersion": "5"}, 'Unsupported value: "Foo"'),
        (
            {"resourceVersionMatch": "NotOlderThan", "resourceVersion": "5", "continue": "x"},
            "resourceVersionMatch is forbidden when continue is provided",
        ),
        ({"sendInitialEvents": "true"}, "sendInitialEvents is forbidden for list"),
    ],
)
def test_options_of_lists_that_can_not_be_are_refused(query: dict[str, str], message: str) -> None:
    """The errors have the texts of an API server."""
    with pytest.raises(StatusError) as caught:
        ListOptions.from_query(query, is_watch=False)
    assert message in caught.value.message


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (
            {"resourceVersionMatch": "NotOlderThan"},
            "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
        ),
        (
            {"sendInitialEvents": "true"},
            "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
        ),
        (
            {"sendInitialEvents": "true", "resourceVersionMatch": "Exact"},
            'Unsupported value: "Exact": supported values: "NotOlderThan"',
        ),
    ],
)
def test_options_of_watches_that_can_not_be_are_refused(query: dict[str, str], message: str) -> None:
    """The errors have the texts of an API server."""
    with pytest.raises(StatusError) as caught:
        ListOptions.from_query(query, is_watch=True)
    assert message in caught.value.message


def test_everything_but_false_and_zero_is_true() -> None:
    """The API machinery of Kubernetes reads booleans in queries this way."""
    read = [
        ListOptions.from_query({"allowWatchBookmarks": text}, is_watch=True).bookmarks
        for text in ("true", "1", "", "yes", "false", "0")
    ]
    assert [True, True, True, True, False, False] == read


def test_options_of_deletes_are_read_and_shown_again() -> None:
    """The body is what webhooks see."""
    body = {
        "kind": "DeleteOptions",
        "apiVersion": "meta.k8s.io/v1",
        "gracePeriodSeconds": 5,
        "preconditions": {"uid": "u", "resourceVersion": "7"},
        "propagationPolicy": "Foreground",
        "dryRun": ["All"],
    }
    options = DeleteOptions.from_json(body)
    assert body == options.to_json()
    assert (True, 5, "Foreground", "u", "7") == (
        options.dry_run,
        options.grace,
        options.propagation,
        options.uid,
        options.resource_version,
    )
    assert DeleteOptions(grace=3, propagation="Orphan") == DeleteOptions.from_query(
        {"gracePeriodSeconds": "3", "propagationPolicy": "Orphan"}
    )


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"propagationPolicy": "Foo"}, 422),
        ({"propagationPolicy": "Orphan", "orphanDependents": True}, 422),
        ({"dryRun": ["x"]}, 422),
        ({"propagationPolicy": 1}, 400),
        ({"preconditions": [1]}, 400),
        ({"gracePeriodSeconds": "soon"}, 400),
        ({"gracePeriodSeconds": True}, 400),
    ],
)
def test_options_of_deletes_that_can_not_be_are_refused(body: dict[str, object], status: int) -> None:
    """Wrong types are 400, wrong values 422; nothing else is raised."""
    with pytest.raises(StatusError) as caught:
        DeleteOptions.from_json(body)
    assert status == caught.value.status
