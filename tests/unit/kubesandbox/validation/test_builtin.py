"""Tests of `validation.builtin`."""

from __future__ import annotations

import pytest

from kubesandbox.validation.builtin import name_errors
from pyverno.kube.json import JSONObject
from tests.unit.kubesandbox.validation.cases import TABLE, errors_of


@pytest.mark.parametrize(
    ("place", "name", "is_good"),
    [
        (("", "v1", "pods"), "a.b", True),
        (("", "v1", "pods"), "A", False),
        (("", "v1", "namespaces"), "a.b", False),
        (("", "v1", "services"), "1a", False),
        (("apps", "v1", "statefulsets"), "a.b", False),
        (("batch", "v1", "cronjobs"), "a" * 53, False),
        (("rbac.authorization.k8s.io", "v1", "clusterroles"), "system:Any thing", True),
        (("rbac.authorization.k8s.io", "v1", "clusterroles"), "a/b", False),
        (("policy", "v1", "poddisruptionbudgets"), "Keep_two", True),
        (("policy", "v1", "poddisruptionbudgets"), "a/b", False),
    ],
)
def test_names_have_the_form_of_their_resource(place: tuple[str, str, str], name: str, is_good: bool) -> None:
    """Most are DNS subdomains, some are not."""
    type_ = TABLE.find(*place)
    assert type_ is not None
    assert is_good == (not name_errors(type_, {"metadata": {"name": name}}))


def test_a_generated_name_needs_no_name() -> None:
    """The prefix is judged instead."""
    type_ = TABLE.find("", "v1", "pods")
    assert type_ is not None
    assert [] == name_errors(type_, {"metadata": {"generateName": "web-"}})
    assert name_errors(type_, {"metadata": {"generateName": "Web-"}})


def test_a_kind_without_checks_is_judged_by_its_schema() -> None:
    """Required fields are all that is known then."""
    body: JSONObject = {
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
        "kind": "FlowSchema",
        "metadata": {"name": "x"},
        "spec": {},
    }
    assert ["spec.priorityLevelConfiguration.name: Required value"] == errors_of(body)
