"""Content negotiation: accepted media types and the bytes that the client gets."""

from __future__ import annotations

from datetime import UTC, datetime

import orjson
import pytest

from kubesandbox.http.replies import Form, Shape, Writer, accepted_form, discovery_version
from kubesandbox.storage.listing import Page
from kubesandbox.storage.store import Key, Stored
from kubesandbox.storage.watching import Event
from kubesandbox.types.resources import ResourceType, builtin_table
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError

TABLE = builtin_table("1.35")
MAPS = TABLE.versions_of("configmaps")[0]
WIDGETS = ResourceType("example.com", "v1", "widgets", "Widget", "widget", True, crd="x", list_kind="WidgetList")
NOW = datetime(2026, 1, 1, 0, 0, 9, tzinfo=UTC)
TABLE_ACCEPT = "application/json;as=Table;v=v1;g=meta.k8s.io"


def state(api_version: str, kind: str) -> Stored:
    """Return an object."""
    metadata = {"name": "a", "resourceVersion": "7", "creationTimestamp": "2026-01-01T00:00:00Z"}
    body = {"apiVersion": api_version, "kind": kind, "metadata": metadata, "data": {"x": "y"}}
    return Stored(Key("configmaps", "n", "a"), body, 7)


def written(type: ResourceType, form: Form, states: list[Stored]) -> JSONObject:
    """Return a list as a client reads it."""
    body: JSONObject = orjson.loads(Writer(type, form, NOW).page(Page(states, 9)))
    return body


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("", Form()),
        ("*/*", Form()),
        ("application/json", Form()),
        ("application/vnd.kubernetes.protobuf,application/json", Form()),
        (f"{TABLE_ACCEPT},application/json", Form(shape=Shape.TABLE)),
        ("application/json;as=Table;v=v1beta1;g=meta.k8s.io", Form(shape=Shape.TABLE, version="v1beta1")),
        ("application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", Form(shape=Shape.PARTIAL)),
        ("application/json;as=Unknown;g=meta.k8s.io;v=v1,application/json", Form()),
        ("application/json;q=0.5,application/yaml", Form("application/yaml")),
    ],
)
def test_the_first_form_that_can_be_written_is_taken(accept: str, expected: Form) -> None:
    """The server never writes protobuf."""
    assert expected == accepted_form({"Accept": accept}, {})


def test_forms_that_can_not_be_written_are_not_acceptable() -> None:
    """The answer is 406, in the two wordings of Kubernetes."""
    for accept, begins in (
        ("text/plain", "406: Not Acceptable\n\nAvailable representations: application/json"),
        ("application/json;as=Foo;v=v1;g=meta.k8s.io", "only the following media types are accepted: "),
    ):
        with pytest.raises(StatusError) as caught:
            accepted_form({"Accept": accept}, {})
        assert 406 == caught.value.status
        assert caught.value.message.startswith(begins)


def test_people_get_indented_json() -> None:
    """JSON is indented for known interactive programs, or on request."""
    assert accepted_form({"User-Agent": "curl/8"}, {}).is_pretty
    assert not accepted_form({"User-Agent": "curl/8"}, {"pretty": "false"}).is_pretty
    assert accepted_form({}, {"pretty": "true"}).is_pretty


def test_discovery_is_aggregated_for_those_who_ask() -> None:
    """The version is the client's first choice."""
    head = "application/json;g=apidiscovery.k8s.io;as=APIGroupDiscoveryList;v="
    assert ["v2", "v2beta1", "", ""] == [
        discovery_version({"Accept": accept})
        for accept in (f"{head}v2,{head}v2beta1,application/json", f"{head}v2beta1", "application/json", f"{head}v9")
    ]


def test_items_of_built_in_lists_do_not_repeat_their_kind() -> None:
    """Items of custom lists repeat theirs, and such lists always have a `continue` field."""
    plain = written(MAPS, Form(), [state("v1", "ConfigMap")])
    assert ("ConfigMapList", "v1", {"resourceVersion": "9"}) == (plain["kind"], plain["apiVersion"], plain["metadata"])
    assert [["metadata", "data"]] == [list(item) for item in plain["items"]]
    custom = written(WIDGETS, Form(), [state("example.com/v1", "Widget")])
    assert ("WidgetList", {"continue": "", "resourceVersion": "9"}) == (custom["kind"], custom["metadata"])
    assert [["apiVersion", "kind", "metadata", "data"]] == [list(item) for item in custom["items"]]


def test_objects_of_another_stored_version_are_converted() -> None:
    """Objects in lists are converted as well."""
    old = TABLE.find("autoscaling", "v1", "horizontalpodautoscalers")
    assert old is not None
    body = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "a"}, "spec": {}}
    page = written(old, Form(), [Stored(Key("x", "", "a"), body, 1)])
    assert ("autoscaling/v1", [{"metadata": {"name": "a"}, "spec": {}}]) == (page["apiVersion"], page["items"])
    custom = written(WIDGETS, Form(), [state("example.com/v1beta1", "Widget")])
    assert ["example.com/v1"] == [item["apiVersion"] for item in custom["items"]]


def test_tables_and_partial_objects_are_written() -> None:
    """Both forms exist for lists and for single objects."""
    maps = state("v1", "ConfigMap")
    table = written(MAPS, Form(shape=Shape.TABLE), [maps])
    assert ("Table", [["a", 1, "9s"]]) == (table["kind"], [row["cells"] for row in table["rows"]])
    partial = written(MAPS, Form(shape=Shape.PARTIAL), [maps])
    assert ("PartialObjectMetadataList", ["PartialObjectMetadata"]) == (
        partial["kind"],
        [item["kind"] for item in partial["items"]],
    )
    one = orjson.loads(Writer(MAPS, Form(shape=Shape.PARTIAL), NOW).one(maps.body, maps))
    assert {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": maps.body["metadata"]} == one


def test_the_bytes_of_the_store_are_used_again() -> None:
    """The stored JSON is sent without encoding the object again."""
    maps = state("v1", "ConfigMap")
    assert maps.json + b"\n" == Writer(MAPS, Form(), NOW).one(maps.body, maps)


def test_yaml_is_written_for_those_who_ask() -> None:
    """Clients that accept YAML get readable YAML."""
    text = Writer(MAPS, Form("application/yaml"), NOW).one({"kind": "ConfigMap", "metadata": {"name": "a"}})
    assert b"kind: ConfigMap\nmetadata:\n  name: a\n" == text


def test_events_are_lines() -> None:
    """Each event is one line; only the first table names its columns, and errors stay a Status."""
    maps = state("v1", "ConfigMap")
    events = [Event("ADDED", maps.body, maps), Event("MODIFIED", {**maps.body, "data": {}})]
    lines = Writer(MAPS, Form(), NOW).events(events, is_first=True).splitlines()
    assert [("ADDED", {"x": "y"}), ("MODIFIED", {})] == [
        (line["type"], line["object"]["data"]) for line in map(orjson.loads, lines)
    ]
    table = Writer(MAPS, Form(shape=Shape.TABLE), NOW)
    bookmark = Event("BOOKMARK", {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"resourceVersion": "9"}})
    error = Event("ERROR", {"kind": "Status", "code": 410})
    found = [
        orjson.loads(line)["object"] for line in table.events([*events, bookmark, error], is_first=True).splitlines()
    ]
    assert [True, False, False, False] == [bool(item.get("columnDefinitions")) for item in found]
    assert ["Table", "Table", "Table", "Status"] == [item["kind"] for item in found]
    assert ([], {"resourceVersion": "9"}) == (found[2]["rows"], found[2]["metadata"])
