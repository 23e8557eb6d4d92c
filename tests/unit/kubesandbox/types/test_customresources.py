"""Tests of `kubesandbox.types.customresources`."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from kubesandbox.types.customresources import (
    accepted,
    definition_update_errors,
    is_established,
    selectable_fields,
    types_of,
    validate_definition,
)
from kubesandbox.types.resources import builtin_table
from pyverno.kube.json import JSONObject
from tests.unit.kubesandbox.schema.widgets import NAMES, version, widgets
from tests.unit.kubesandbox.validation.cases import claims, errors_of

TABLE = builtin_table("1.35")
ROWS = [
    (row["object"], row["errors"])
    for row in yaml.load((Path(__file__).parent / "definitions.yaml").read_text(), yaml.CSafeLoader)
]


@pytest.mark.parametrize(("body", "expected"), ROWS, ids=claims(ROWS))
def test_a_wrong_definition_is_refused_in_the_words_of_an_api_server(body: JSONObject, expected: list[str]) -> None:
    """Every row of the table is refused with exactly these errors."""
    assert sorted(expected) == sorted(errors_of(body))


def test_served_versions_become_types() -> None:
    """The preferred version comes first; versions that are not served are left out."""
    crd = widgets(
        version("v1beta1"),
        version("v2", served=False),
        version("v1", subresources={"status": {}, "scale": {}}),
        names={**NAMES, "shortNames": ["wd"], "categories": ["all"]},
    )
    first, second = types_of(crd)
    assert ("v1", "v1beta1") == (first.version, second.version)
    assert (("scale", "status"), ("wd",), ("all",), "widgets.ex.io", True) == (
        first.subresources,
        first.short_names,
        first.categories,
        first.crd,
        first.namespaced,
    )


def test_a_definition_with_free_names_is_established() -> None:
    """The time of a condition is that of its last change."""
    crd = accepted(widgets(), TABLE, now="T1")
    conditions = crd["status"]["conditions"]
    assert [("NamesAccepted", "True"), ("Established", "True")] == [(c["type"], c["status"]) for c in conditions]
    assert (True, NAMES, ["v1"]) == (
        is_established(crd),
        crd["status"]["acceptedNames"],
        crd["status"]["storedVersions"],
    )
    again = accepted(crd, TABLE.with_types(types_of(crd)), now="T2")
    assert crd == again


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        ({"kind": "Gadget", "plural": "widgets"}, "PluralConflict"),
        ({"kind": "Gadget", "plural": "gadgets", "shortNames": ["widget"]}, "ShortNamesConflict"),
        ({"kind": "Widget", "plural": "gadgets"}, "KindConflict"),
        ({"kind": "Gadget", "plural": "gadgets", "listKind": "WidgetList"}, "ListKindConflict"),
    ],
)
def test_names_of_others_are_not_accepted(names: JSONObject, reason: str) -> None:
    """A definition whose names are taken is not served."""
    other = widgets(names=names) | {"metadata": {"name": "gadgets.ex.io"}}
    crd = accepted(other, TABLE.with_types(types_of(widgets())), now="T")
    conditions = {condition["type"]: condition for condition in crd["status"]["conditions"]}
    assert (reason, "False") == (conditions["NamesAccepted"]["reason"], conditions["NamesAccepted"]["status"])
    assert not is_established(crd)
    elsewhere = accepted(widgets(names=names, group="other.io"), TABLE.with_types(types_of(widgets())))
    assert is_established(elsewhere)


def test_a_new_storage_version_is_remembered_beside_the_old_one() -> None:
    """Objects of the old version may still exist."""
    crd = accepted(widgets(), TABLE)
    crd["spec"]["versions"] = [version("v1"), version("v2", storage=True)]
    assert ["v1", "v2"] == accepted(crd, TABLE)["status"]["storedVersions"]


def test_fields_of_selectors_are_those_of_a_version() -> None:
    """Each version has its own."""
    crd = widgets(version("v1", selectableFields=[{"jsonPath": ".spec.color"}]), version("v2"))
    assert ([("spec.color",), ()]) == [selectable_fields(crd, name) for name in ("v1", "v2")]


def test_a_good_definition_is_taken() -> None:
    """A definition may have rules, list types and several versions."""
    assert [] == validate_definition(widgets())
    assert [] == validate_definition(widgets(version("v1", storage=True), version("v2")))


def test_an_established_definition_keeps_its_scope_and_kind() -> None:
    """A version in which objects are stored cannot be removed."""
    old = accepted(widgets(), TABLE)
    new = widgets(version("v2", storage=True), scope="Cluster", names={**NAMES, "kind": "Gadget"})
    errors = definition_update_errors(new, old)
    assert ["spec.scope", "spec.names.kind", "status.storedVersions[0]"] == [error.field for error in errors]
    assert [] == definition_update_errors(widgets(scope="Cluster"), widgets())


@pytest.mark.parametrize(
    ("conversion", "expected"),
    [
        ({"strategy": "None"}, []),
        ({"strategy": ""}, ["strategy: Required value"]),
        ({"strategy": "Foo"}, ['strategy: Unsupported value: "Foo": supported values: "None", "Webhook"']),
        (
            {"strategy": "Webhook"},
            [
                "webhookClientConfig: Required value: required when strategy is set to Webhook",
                "conversionReviewVersions: Required value",
            ],
        ),
        (
            {
                "strategy": "None",
                "webhook": {"clientConfig": {"url": "https://h"}, "conversionReviewVersions": ["v1"]},
            },
            [
                "webhookClientConfig: Forbidden: should not be set when strategy is not set to Webhook",
                "conversionReviewVersions: Forbidden: should not be set when strategy is not set to Webhook",
            ],
        ),
        (
            {"strategy": "Webhook", "webhook": {"clientConfig": {}, "conversionReviewVersions": ["v1"]}},
            ["webhookClientConfig: Required value: exactly one of url or service is required"],
        ),
        (
            {
                "strategy": "Webhook",
                "webhook": {"clientConfig": {"url": "https://h"}, "conversionReviewVersions": ["v1"]},
            },
            [],
        ),
    ],
)
def test_a_conversion_names_its_webhook(conversion: JSONObject, expected: list[str]) -> None:
    """Errors name the fields as in Kubernetes' internal type."""
    crd = widgets(version("v1", storage=True))
    crd = {**crd, "spec": {**crd["spec"], "conversion": conversion}}
    assert [f"spec.conversion.{text}" for text in expected] == list(map(str, validate_definition(crd)))


def test_types_know_where_they_are_kept_and_who_converts_them() -> None:
    """Storage version and conversion do not depend on the served version."""
    crd = widgets(version("v1"), version("v2", served=False, storage=True))
    crd["spec"]["versions"][0]["storage"] = False
    (found,) = types_of(crd)
    assert ("v1", "v2", False) == (found.version, found.storage, found.converts_by_webhook)
    crd["spec"]["conversion"] = {"strategy": "Webhook"}
    assert types_of(crd)[0].converts_by_webhook
