"""Links and export files of Kyverno's playground."""

from __future__ import annotations

import pytest

from pyverno.errors import PyvernoError
from pyverno.kube.yaml.documents import load_documents
from pyverno.kube.yaml.writer import dump_yaml
from pyverno.ui.playground.importing import import_text
from pyverno.ui.playground.review import review_texts
from tests.support import documents
from tests.support.playgroundlinks import CONTENT, LINK
from tests.unit.ui.playground.test_review import POD


@pytest.mark.parametrize("text", [LINK, CONTENT, f"  {LINK}\n", f"http://localhost:8080/#/?content={CONTENT}"])
def test_a_link_becomes_texts_that_are_reviewed(text: str) -> None:
    """Policy, resource, user, variables, labels of the namespace and the operation; the misspelt key as well."""
    (profile,) = import_text(text)["profiles"]
    state = profile["state"]
    assert {"policies", "resources", "clusterResources", "userInfo", "values", "operation"} == set(state)
    assert "UPDATE" == state["operation"]
    (user,) = load_documents(state["userInfo"], file="u")
    assert {"username": "alice", "groups": ["team"]} == user.value["userInfo"]
    (values,) = load_documents(state["values"], file="v")
    assert [{"name": "shop", "labels": {"team": "blue"}}] == values.value["namespaceSelector"]
    assert {"level": "high"} == values.value["globalValues"]
    assert ["the configuration of Kyverno is left out"] == profile["notes"]
    found = review_texts({**state, "clusterResources": ""})
    # the old object, the same, violates the policy already
    assert ([], "UPDATE", True) == (
        found["problems"],
        found["reviews"][0]["operation"],
        found["reviews"][0]["allowed"],
    )


BINDING = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: b}
spec: {policyName: p, validationActions: [Deny]}
"""


def test_an_export_file_has_several_states() -> None:
    """Each state becomes texts; bindings are among the policies."""
    profiles: list[dict[str, str]] = [
        {"name": "current-state", "policies": documents.LATEST, "resources": POD},
        {"name": "other", "policies": documents.LATEST, "vapBindings": BINDING, "exceptions": documents.EXCEPTION},
    ]
    found = import_text(dump_yaml({"date": "2026-01-01", "version": "0.10", "profiles": profiles}))["profiles"]
    assert ["current-state", "other"] == [each["name"] for each in found]
    assert f"{documents.LATEST}---\n{BINDING}" == found[1]["state"]["policies"]
    assert documents.EXCEPTION == found[1]["state"]["exceptions"]


@pytest.mark.parametrize(
    "text", ["", "x", "https://example/#/?content=", "a: b\nc: d\n", "profiles: 1\n", "profiles: [1]\n", "a: [\n"]
)
def test_anything_else_is_an_error(text: str) -> None:
    """The error is one sentence without a traceback."""
    with pytest.raises(PyvernoError):
        import_text(text)


@pytest.mark.parametrize("context", ["a: [", "- 1\n", "context: 1\n", "variables: []\n"])
def test_a_context_that_cannot_be_read_is_named(context: str) -> None:
    """The remaining texts are still imported."""
    (profile,) = import_text(dump_yaml({"profiles": [{"policies": documents.LATEST, "context": context}]}))["profiles"]
    assert documents.LATEST == profile["state"]["policies"]
    assert profile["notes"][0].startswith("the context is left out")
