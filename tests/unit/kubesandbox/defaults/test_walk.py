"""Whole objects get the defaults that a cluster's API server gives them."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path

import pytest
import yaml

from kubesandbox.defaults.walk import BUILTIN_HOOKS, BuiltinDefaults
from pyverno.kube.json import JSON
from pyverno.kube.schemas import VERSIONS, schema_set
from tests.unit.kubesandbox.validation.cases import SCHEMAS, type_of

ROWS = yaml.load((Path(__file__).parent / "objects.yaml").read_text(), yaml.CSafeLoader)


def claim(row: dict[str, JSON]) -> str:
    """The name of a row."""
    return f"{row['written']['kind']}-{row['written']['metadata']['name']}"


@pytest.mark.parametrize("row", ROWS, ids=claim)
def test_an_object_is_filled_in(row: dict[str, JSON]) -> None:
    """The object is decoded and defaulted as in the row."""
    type_ = type_of(row["written"])
    assert row["filled"] == SCHEMAS.default(type_, SCHEMAS.decode(type_, row["written"]).body)


@pytest.mark.parametrize("row", ROWS, ids=claim)
def test_reading_and_defaulting_again_changes_nothing(row: dict[str, JSON]) -> None:
    """Both are idempotent, and leave the object that they are given alone."""
    type_, filled = type_of(row["written"]), row["filled"]
    before = deepcopy(filled)
    assert filled == SCHEMAS.default(type_, filled)
    decoded = SCHEMAS.decode(type_, filled)
    assert (filled, ()) == (decoded.body, decoded.problems)
    assert before == filled


def test_every_hook_belongs_to_a_type() -> None:
    """A misspelled name would fill in nothing."""
    known = {name for version in VERSIONS for name in schema_set(version).definitions}
    assert set() == set(BUILTIN_HOOKS) - known


def test_a_default_can_be_younger_than_a_version() -> None:
    """Kubernetes 1.34 has no default for `maxUnavailable` of a StatefulSet."""
    spec = "io.k8s.api.apps.v1.StatefulSetSpec"
    old, new = (BuiltinDefaults(schema_set(version)).fill(spec, {})["updateStrategy"] for version in ("1.34", "1.35"))
    assert {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}} == old
    assert {"type": "RollingUpdate", "rollingUpdate": {"partition": 0, "maxUnavailable": 1}} == new
