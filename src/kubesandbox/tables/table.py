"""The Table of one list of objects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import cache

from kubesandbox.tables.cells import name_of, text
from kubesandbox.tables.customresources import custom_printer
from kubesandbox.tables.printer import NAME, Column, Printer, Printers
from kubesandbox.types.resources import ResourceType
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.status import bad_request

__all__ = ["printer_of", "to_table"]

_PARTIAL: JSONObject = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}


def to_table(
    type: ResourceType,
    objects: Iterable[JSONObject],
    *,
    now: datetime,
    columns: Iterable[JSONObject] | None = None,
    include_object: str = "Metadata",
    metadata: JSONObject | None = None,
    with_columns: bool = True,
) -> JSONObject:
    """Return objects as a `meta.k8s.io/v1` Table.

    `columns` are the `additionalPrinterColumns` of a custom resource's version; `metadata` is that of the list
    (version, continue token), `with_columns` is false for all events of a watch but the first. Raises StatusError 400
    for an `include_object` that is not known.

    >>> from datetime import UTC, timedelta
    >>> from kubesandbox.types.resources import builtin_table
    >>> maps = builtin_table("1.35").find("", "v1", "configmaps")
    >>> born = datetime(2026, 1, 1, tzinfo=UTC)
    >>> body = {"metadata": {"name": "a", "creationTimestamp": "2026-01-01T00:00:00Z"}, "data": {"k": "v"}}
    >>> to_table(maps, [body], now=born + timedelta(hours=5))["rows"][0]["cells"]
    ['a', 1, '5h']
    """
    printer = printer_of(type, columns)
    rows = []
    for body in objects:
        row: JSONObject = {"cells": list(printer.cells(body, now))}
        conditions = printer.conditions(body) if printer.conditions is not None else None
        if conditions:
            row["conditions"] = conditions
        row["object"] = _included(body, include_object)
        rows.append(row)
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata or {},
        "columnDefinitions": [column.to_json() for column in printer.columns] if with_columns else None,
        "rows": rows,
    }


def printer_of(type: ResourceType, columns: Iterable[JSONObject] | None = None) -> Printer:
    """Return how objects of a type are shown; kinds without columns of their own show name and time of creation."""
    if type.is_custom:
        return custom_printer(columns)
    return _printers().get((type.group, type.plural), _DEFAULT)


def _included(body: JSONObject, include_object: str) -> JSON:
    match include_object:
        case "Metadata" | "":
            return {**_PARTIAL, "metadata": body.get("metadata") or {}}
        case "Object":
            return body
        case "None":
            return None
    raise bad_request(
        f'Unable to convert to Table as requested: includeObject: Invalid value: "{include_object}": '
        "must be 'Metadata', 'Object', 'None', or empty"
    )


def _default_cells(body: JSONObject, now: datetime) -> Iterator[JSON]:
    yield name_of(body)
    yield text(body, "metadata", "creationTimestamp")


_DEFAULT = Printer((NAME, Column("Created At", "date")), _default_cells)


@cache
def _printers() -> Printers:
    from kubesandbox.tables import access, cluster, network, pods, storage, workloads

    families = (access, cluster, network, pods, storage, workloads)
    return {place: printer for family in families for place, printer in family.PRINTERS.items()}
