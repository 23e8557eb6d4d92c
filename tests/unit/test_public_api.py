"""The library: what it exports, and the example of the README."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import pyverno

POLICY = """\
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: no-latest}
spec:
  rules:
  - name: tag
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate:
      failureAction: Enforce
      message: no latest
      pattern: {spec: {containers: [{image: "!*:latest"}]}}
"""
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "a", "namespace": "b"},
    "spec": {"containers": [{"name": "c", "image": "nginx:latest"}]},
}

EXPECTED = {
    *("ADMISSION", "DELETING", "GENERATING", "MUTATING", "MUTATING_EXISTING", "VALIDATING"),
    *("Compilation", "Decision", "Document", "Engine", "FailureAction", "Host", "Location", "ObjectStore"),
    *(
        "OfflineHost",
        "Operation",
        "Session",
        "PolicySet",
        "Request",
        "ResourceRef",
        "Review",
        "RuleResult",
        "Status",
        "User",
    ),
    *(
        "BudgetExceededError",
        "ContextEntryError",
        "DocumentError",
        "EvaluationError",
        "ExpressionError",
        "ExpressionSyntaxError",
    ),
    *(
        "NotFoundError",
        "NullArgumentError",
        "HostError",
        "HostUnavailableError",
        "PatchError",
        "PolicyError",
        "PyvernoError",
        "SubstitutionError",
    ),
    *("NotFoundError", "NullArgumentError", "UnknownKeyError", "UsageError", "ValueSyntaxError", "VerificationError"),
    *("__version__", "compile_documents", "compile_policies", "load_documents", "load_policies", "review"),
}


def test_exactly_these_names_are_public() -> None:
    """Adding or removing one is a decision, not an accident."""
    assert EXPECTED == set(pyverno.__all__)
    assert len(pyverno.__all__) == len(EXPECTED)


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_every_name_exists(name: str) -> None:
    """Each is imported when it is first used."""
    assert getattr(pyverno, name) is not None
    assert name in dir(pyverno)


def test_every_error_is_exported() -> None:
    """The whole tree, so that callers can catch each of them."""
    from pyverno import errors

    assert {"NOWHERE"} == set(errors.__all__) - set(pyverno.__all__)


def test_unknown_names_are_attribute_errors() -> None:
    """As for any module."""
    with pytest.raises(AttributeError, match="has no attribute `nonsense`"):
        _ = pyverno.nonsense  # type: ignore[attr-defined]


def test_importing_the_package_imports_nothing() -> None:
    """Neither third parties nor the engine."""
    code = "import sys; before = set(sys.modules); import pyverno; print(*(set(sys.modules) - before))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {"pyverno", "pyverno.version"} == set(ran.stdout.split()) - {"__future__"}


def test_the_example_of_the_readme_runs(tmp_path: Path) -> None:
    """Policies of a folder judge an object."""
    (tmp_path / "policy.yaml").write_text(POLICY)
    policies = pyverno.load_policies(tmp_path)
    review = pyverno.review(POD, policies)
    said = [(r.rule.policy.name, r.rule.name, r.status.value, r.message) for r in review.results]
    message = "validation error: no latest. rule tag failed at path /spec/containers/0/image/"
    assert [("no-latest", "tag", "fail", message)] == said
    assert not review.decision.allowed


def test_policies_come_from_text_and_objects() -> None:
    """The same policy either way."""
    from_text = pyverno.load_policies(POLICY)
    (document,) = pyverno.load_documents(POLICY)
    from_object = pyverno.compile_policies([document.value])
    assert len(from_text) == len(from_object) == 1


def test_all_problems_of_all_policies_are_told() -> None:
    """The error's text has one line per problem, with places."""
    with pytest.raises(pyverno.PolicyError) as caught:
        pyverno.load_policies(f"{POLICY.replace('failureAction', 'failAction')}---\n{POLICY.replace('rules', 'rule')}")
    assert 2 <= len(str(caught.value).splitlines())


def test_a_missing_file_is_a_usage_error() -> None:
    """Paths are not guessed to be text."""
    with pytest.raises(pyverno.UsageError, match="does not exist"):
        pyverno.load_policies("nowhere/policies.yaml")
