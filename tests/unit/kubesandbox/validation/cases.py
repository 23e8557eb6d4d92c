"""Reads the tables of this folder: objects, and a server's errors about them."""

from __future__ import annotations

from pathlib import Path

import yaml

from kubesandbox.schema.schemas import ObjectSchemas
from kubesandbox.types.resources import ResourceType, builtin_table
from pyverno.kube.gvk import GVK, parse_api_version
from pyverno.kube.json import JSONObject

SCHEMAS = ObjectSchemas("1.35")
TABLE = builtin_table("1.35")


def type_of(body: JSONObject) -> ResourceType:
    group, version = parse_api_version(body["apiVersion"])
    found = TABLE.by_kind(GVK(group, version, body["kind"]))
    assert found is not None
    return found


def prepared(body: JSONObject, old: JSONObject | None = None) -> JSONObject:
    """An object as it is when it is validated: read, defaulted, normalized."""
    type_ = type_of(body)
    filled = SCHEMAS.default(type_, SCHEMAS.decode(type_, body).body)
    return SCHEMAS.normalize(type_, filled, old)


def errors_of(body: JSONObject, old: JSONObject | None = None) -> list[str]:
    """Return the errors of an object, or of a change."""
    return [str(error) for error in SCHEMAS.validate(type_of(body), prepared(body, old), old)]


def refusals(name: str) -> list[tuple[JSONObject, list[str]]]:
    """The rows of a table: an object, and the errors about it."""
    rows = yaml.safe_load((Path(__file__).parent / f"{name}.yaml").read_text())
    return [(row["object"], row["errors"]) for row in rows]


def claims(rows: list[tuple[JSONObject, list[str]]]) -> list[str]:
    """Names for the rows of a table."""
    return [f"{index}-{body['kind']}-{errors[0].partition(':')[0]}" for index, (body, errors) in enumerate(rows)]
