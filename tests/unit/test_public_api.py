"""The library: what it exports, and the example of the README."""

from __future__ import annotations

import asyncio
import inspect
import pickle
import pydoc
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
    # what a typed Host needs
    *("ApiPath", "HttpCall", "JSON", "JSONObject", "KindTable", "NoHost"),
    # what a handler of results needs
    *("Change", "CreateEffect", "DeleteEffect", "Effect", "Explanation", "PatchEffect", "Phase", "PolicyInfo"),
    *("RuleInfo", "RuleType", "areview"),
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
        "CombinedError",
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
    # images
    *("DemandVerdict", "ImageVerdict", "verify_image"),
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

    assert {"NOWHERE", "raise_all"} == set(errors.__all__) - set(pyverno.__all__)


def test_unknown_names_are_attribute_errors() -> None:
    """The module raises AttributeError, as any module does."""
    with pytest.raises(AttributeError, match="has no attribute `nonsense`"):
        _ = pyverno.nonsense  # type: ignore[attr-defined]


def test_importing_the_package_imports_nothing() -> None:
    """It loads neither third-party packages nor the engine."""
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


def test_all_problems_of_all_policies_are_reported() -> None:
    """The error's text has one line per problem, with places."""
    with pytest.raises(pyverno.PolicyError) as caught:
        pyverno.load_policies(f"{POLICY.replace('failureAction', 'failAction')}---\n{POLICY.replace('rules', 'rule')}")
    assert 2 <= len(str(caught.value).splitlines())


def test_a_missing_file_is_a_usage_error() -> None:
    """Paths are not guessed to be text."""
    with pytest.raises(pyverno.UsageError, match="does not exist"):
        pyverno.load_policies("nowhere/policies.yaml")


def test_policies_come_from_iterables_of_sources(tmp_path: Path) -> None:
    """Paths, texts, documents and objects, mixed and nested."""
    path = tmp_path / "policy.yaml"
    path.write_text(POLICY.replace("no-latest", "a"))
    [document] = pyverno.load_documents(POLICY.replace("no-latest", "b"))
    mixed = [path, [document, POLICY.replace("no-latest", "c")], pyverno.load_documents(POLICY)[0].value]
    assert ["a", "b", "c", "no-latest"] == [each.info.name for each in pyverno.load_policies(mixed)]


@pytest.mark.parametrize("empty", ["", "   "])
def test_an_empty_text_names_no_policies(empty: str) -> None:
    """An empty path must not mean the current folder."""
    with pytest.raises(pyverno.UsageError, match="an empty text names no policies"):
        pyverno.load_policies(empty)


def test_operations_are_texts_or_members() -> None:
    """Both mean the same; another text is an error that lists them."""
    policies = pyverno.load_policies(POLICY)
    found = [pyverno.review(POD, policies, operation=each).request for each in ("UPDATE", pyverno.Operation.UPDATE)]
    assert found[0] == found[1]
    with pytest.raises(pyverno.UsageError, match="unknown operation `update`, expected one of CREATE, UPDATE"):
        pyverno.review(POD, policies, operation="update")


def test_sets_and_engines_survive_pickling() -> None:
    """Another process compiles the documents again and returns the same results."""
    engine = pyverno.Engine(pyverno.load_policies(POLICY), pyverno.OfflineHost())
    copied = pickle.loads(pickle.dumps(engine))  # noqa: S301 - our own bytes
    request = pyverno.Request.from_manifest(POD)
    first, second = (
        [(each.rule.name, each.status, each.message) for each in one.review(request).results]
        for one in (engine, copied)
    )
    assert first == second
    with pytest.raises(TypeError, match="only a PolicySet as it was loaded"):
        pickle.dumps(pyverno.PolicySet())


def test_sets_and_engines_have_readable_texts() -> None:
    """`repr` shows the names of the policies, not memory addresses."""
    policies = pyverno.load_policies(POLICY)
    assert ("<PolicySet of 1: no-latest>", "<Engine of <PolicySet of 1: no-latest> with OfflineHost>") == (
        repr(policies),
        repr(pyverno.Engine(policies, pyverno.OfflineHost())),
    )


def test_areview_gives_the_results_of_review() -> None:
    """It runs in a thread."""
    policies = pyverno.load_policies(POLICY)
    assert pyverno.review(POD, policies).results == asyncio.run(pyverno.areview(POD, policies)).results


def test_a_result_has_the_places_of_its_rule_and_of_the_field() -> None:
    """Both places have file, line and column."""
    text = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  containers:\n  - {name: c, image: 'x:latest'}\n"
    [document] = pyverno.load_documents(text, file="pod.yaml")
    [policy] = pyverno.load_documents(POLICY, file="policy.yaml")
    review = pyverno.review(document.value, pyverno.load_policies(policy))
    [result] = review.results
    assert ("policy.yaml:6:5", "pod.yaml:6:22") == (str(result.rule.location), str(review.locate(result, document)))


def test_help_reads_like_documentation() -> None:
    """The module and every public name have a first line that states what they are for."""
    undocumented = [
        name
        for name in pyverno.__all__
        if callable(getattr(pyverno, name)) and not (inspect.getdoc(getattr(pyverno, name)) or "").strip()
    ]
    assert [] == undocumented
    assert "policies = pyverno.load_policies" in pydoc.render_doc(pyverno)
