"""Rows of built-in kinds are those that a cluster's API server gives for the same objects."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from kubesandbox.tables import to_table
from kubesandbox.tables.table import printer_of
from kubesandbox.types.resources import ResourceType, builtin_table
from pyverno.kube.gvk import GVK, parse_api_version
from pyverno.kube.json import JSON, JSONObject

TABLE = builtin_table("1.35")
NOW = datetime(2026, 11, 22, 5, tzinfo=UTC)
ROWS = yaml.load((Path(__file__).parent / "rows.yaml").read_text(), yaml.CSafeLoader)


def type_of(body: JSONObject) -> ResourceType:
    """Return the type of an object."""
    found = TABLE.by_kind(GVK(*parse_api_version(body["apiVersion"]), body["kind"]))
    assert found is not None
    return found


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['object']['kind']}-{row['object']['metadata']['name']}")
def test_a_row_is_that_of_a_cluster(row: dict[str, JSON]) -> None:
    """Every cell, those of `-o wide` included."""
    table = to_table(type_of(row["object"]), [row["object"]], now=NOW)
    assert row["cells"] == table["rows"][0]["cells"]
    assert len(table["columnDefinitions"]) == len(row["cells"])


@pytest.mark.parametrize("type", list(TABLE), ids=lambda type: f"{type.group}-{type.version}-{type.plural}")
def test_an_empty_object_has_a_row_of_every_kind(type: ResourceType) -> None:
    """Missing fields cause no error, and every row has as many cells as its kind has columns."""
    body: JSONObject = {"metadata": {}, "spec": {}, "status": {}}
    printer = printer_of(type)
    assert len(printer.columns) == len(list(printer.cells(body, NOW)))


def test_a_finished_pod_shows_its_end() -> None:
    """The row carries the condition by which clients dim finished pods."""
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "status": {"phase": "Succeeded"}}
    (row,) = to_table(type_of(pod), [pod], now=NOW)["rows"]
    assert [("Completed", "True", "Succeeded")] == [
        (condition["type"], condition["status"], condition["reason"]) for condition in row["conditions"]
    ]


@pytest.mark.parametrize(
    ("conditions", "certificate", "expected"),
    [
        ([], "", "Pending"),
        (["Approved"], "", "Approved"),
        (["Approved"], "aGk=", "Approved,Issued"),
        (["Approved", "Denied", "Failed"], "", "Denied,Failed"),
    ],
)
def test_a_signing_request_shows_how_far_it_came(conditions: list[str], certificate: str, expected: str) -> None:
    """A denied condition takes precedence over an approved one."""
    body: JSONObject = {
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"name": "a"},
        "spec": {"signerName": "x/y", "username": "ann", "expirationSeconds": 86400},
        "status": {"conditions": [{"type": kind} for kind in conditions], "certificate": certificate},
    }
    (row,) = to_table(type_of(body), [body], now=NOW)["rows"]
    assert ["a", "<unknown>", "x/y", "ann", "24h", expected] == row["cells"]


@pytest.mark.parametrize(
    ("kind", "expected"), [("Role", ["a", "2026-11-22T00:00:00Z"]), ("ClusterRole", ["a", "2026-11-22T00:00:00Z"])]
)
def test_kinds_without_columns_show_when_they_were_made(kind: str, expected: list[str]) -> None:
    """Name and CREATED AT."""
    body: JSONObject = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind}
    body["metadata"] = {"name": "a", "creationTimestamp": "2026-11-22T00:00:00Z"}
    table = to_table(type_of(body), [body], now=NOW)
    assert expected == table["rows"][0]["cells"]
    assert [("Name", "string"), ("Created At", "date")] == [
        (column["name"], column["type"]) for column in table["columnDefinitions"]
    ]
