"""Context entries decode into one type each."""

import pytest

from pyverno.policy.context import ApiCall, ConfigMap, GlobalReference, ImageRegistry, Variable
from tests.unit.policy.documents import POLICY, cluster_policy, problems


def with_entry(entry: str) -> str:
    return POLICY.replace("      validate:", f"      context:\n        - {entry}\n      validate:")


@pytest.mark.parametrize(
    ("entry", "kind"),
    [
        ("{name: a, variable: {value: 1}}", Variable),
        ("{name: a, configMap: {name: c, namespace: team}}", ConfigMap),
        ("{name: a, apiCall: {urlPath: /api/v1/pods}}", ApiCall),
        ("{name: a, imageRegistry: {reference: r}}", ImageRegistry),
        ("{name: a, globalReference: {name: g}}", GlobalReference),
    ],
)
def test_each_entry_has_its_type(entry, kind):
    """The field that is present decides the type."""
    (found,) = cluster_policy(with_entry(entry)).spec.rules[0].context
    assert type(found) is kind
    assert found.path == ("spec", "rules", 0, "context", 0)


def test_false_is_a_default_and_null_is_none():
    """A default of false counts as written."""
    (entry,) = cluster_policy(with_entry("{name: a, variable: {jmesPath: b, default: false}}")).spec.rules[0].context
    assert entry.default is False


@pytest.mark.parametrize("entry", ["{name: a}", "{name: a, variable: {value: 1}, configMap: {name: c}}"])
def test_an_entry_has_exactly_one_source(entry):
    """None and several are errors."""
    ((code, path, _),) = problems(with_entry(entry))
    assert (code, path) == ("context-entry", "spec.rules[0].context[0]")
