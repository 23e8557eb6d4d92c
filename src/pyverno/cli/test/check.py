"""Rows of `pyverno test`: expected results compared with the results of reviews.

Rows are compared as Kyverno's command line does; rows that prove nothing carry the reason in `vacuous`, and strict mode
counts them as failures.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from pyverno.cli.test.diff import tidy, yaml_diff
from pyverno.cli.test.evaluated import is_evaluated
from pyverno.cli.test.subjects import Subject, Subjects
from pyverno.cli.test.suite import ReviewedManifest, Suite
from pyverno.compiler.compile import Compiled
from pyverno.engine.effects import CreateEffect
from pyverno.engine.result import ResourceRef, RuleResult, RuleType
from pyverno.engine.rule import CompiledPolicy, RuleInfo
from pyverno.errors import Location, PyvernoError, UsageError, raise_all
from pyverno.kube.json import JSON, JSONObject, equal
from pyverno.kube.resource import Resource
from pyverno.offline.files import load_files
from pyverno.offline.resources import normalise
from pyverno.offline.testfile import ExpectedResult, Outcome
from pyverno.policy.kinds import RULE_KINDS
from pyverno.report.summary import reported_status
from pyverno.value import dataclass

__all__ = [
    "IGNORED",
    "NOT_FOUND",
    "Row",
    "check_rows",
    "covered_subjects",
    "expected_objects",
    "missing_files",
    "rule_fits",
]

IGNORED = "Ignored"
"""The outcome of a row that Kyverno drops silently."""

NOT_FOUND = "Not found"
"""The reason of a row without a result."""

_EXCLUDED = "Excluded"
_LEGEND = "(< only in expected, > only in actual)"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the result table; `outcome` is Pass, Fail, Skip or IGNORED (hidden, but checked in strict mode).

    `vacuous` is the reason why the row proves nothing ("" = it does).
    """

    policy: str
    rule: str
    resource: str
    outcome: str
    reason: str
    message: str = ""
    vacuous: str = ""
    expected: ExpectedResult | None = None

    @property
    def counts_as_failed(self) -> bool:
        """Return whether the row fails the test."""
        return self.outcome == "Fail"


def check_rows(suite: Suite, judged: Sequence[ReviewedManifest], rows: Iterable[ExpectedResult]) -> Iterator[Row]:
    """Check expected results in order; one entry gives a row per resource and rule that it covers."""
    subjects = Subjects(judged)
    invalid = suite.invalid
    for row in rows:
        chosen = subjects.select(row)
        refused = invalid.get(row.policy_name)
        if refused is not None:
            yield from _refused(row, refused, [subject.text for subject, _ in chosen])
            continue
        policies = suite.policies_named(row.policy_name)
        found = [each for subject, is_named in chosen for each in _check(suite, row, policies, subject, is_named)]
        yield from found or [_not_found(row, ", ".join(row.resources))]


def covered_subjects(suite: Suite, subjects: Subjects, row: ExpectedResult) -> Iterator[tuple[Compiled, Subject]]:
    """Yield the policies and objects that a row checks."""
    policies = () if row.policy_name in suite.invalid else suite.policies_named(row.policy_name)
    for subject, _ in subjects.select(row) if policies else ():
        yield from ((policy, subject) for policy in policies)


def rule_fits(row: ExpectedResult, info: RuleInfo) -> bool:
    """Return whether a row is for a rule, or for the rule that it was generated from."""
    if not row.rule or info.policy.kind not in RULE_KINDS:
        return True
    return info.name in (row.rule, f"autogen-{row.rule}", f"autogen-cronjob-{row.rule}")


def _not_found(row: ExpectedResult, resource: str) -> Row:
    return Row(row.policy, row.rule, resource, "Fail", NOT_FOUND, NOT_FOUND, expected=row)


def _refused(row: ExpectedResult, policy: Compiled, resources: Sequence[str]) -> Iterator[Row]:
    """Yield the rows of a policy that is not valid; Kyverno counts them as passed."""
    message = "; ".join(str(error) for error in policy.errors)
    for name in resources or row.resources or ("",):
        yield Row(row.policy, row.rule, name, "Skip", "Invalid Policy", message, "the policy is not valid", row)


def _check(
    suite: Suite, row: ExpectedResult, policies: Sequence[Compiled], subject: Subject, is_named: bool
) -> list[Row]:
    """Return the rows of one object; it fails if no policy was evaluated for it and the row expects no skip."""
    rows: list[Row] = []
    # the row names the object and expects that the rule does not select it
    expects_exclusion = is_named and row.result is Outcome.SKIP
    for policy in policies:
        rows += _compare_all(suite, row, policy, subject)
        is_payload = bool(subject.judged.payload)
        if rows or subject.is_target:
            continue
        if expects_exclusion or is_evaluated(policy, is_payload=is_payload):
            rows.append(_excluded(row, subject, is_expected=expects_exclusion))
    return rows or ([] if subject.is_target else [_not_found(row, subject.text)])


def _excluded(row: ExpectedResult, subject: Subject, *, is_expected: bool) -> Row:
    vacuous = f"no rule `{row.rule}` of the policy judged it" if row.rule else "no rule judged it"
    return Row(row.policy, row.rule, subject.text, "Pass", _EXCLUDED, "Excluded", "" if is_expected else vacuous, row)


def _compare_all(suite: Suite, row: ExpectedResult, item: Compiled, subject: Subject) -> Iterator[Row]:
    """Yield the rows of the results that a policy has for an object."""
    policy = item.policy
    if policy is None:
        return
    for result in subject.judged.review.results:
        if result.rule.policy is not policy.info or not rule_fits(row, result.rule):
            continue
        if subject.is_target and (result.target is None or result.patched is not subject.document):
            continue
        yield from _compare(suite, row, policy, subject, result)


def _compare(
    suite: Suite, row: ExpectedResult, policy: CompiledPolicy, subject: Subject, result: RuleResult
) -> Iterator[Row]:
    created = [effect.resource for effect in result.effects if isinstance(effect, CreateEffect)]
    if result.rule.type is RuleType.GENERATION and created:
        for resource in created:
            yield _row(suite, row, _generated_text(resource), result, _generated_problem(suite, row, resource))
        return
    problem = None
    if row.patched_resources:
        problem = _patched_problem(suite, row, _object_after(subject, policy, result))
        if problem == ("missing", ""):
            vacuous = f"`{row.patched_resources}` does not hold it"
            yield Row(row.policy, row.rule, subject.text, IGNORED, "Not expected", "", vacuous, row)
            return
    yield _row(suite, row, subject.text, result, problem)


def _row(suite: Suite, row: ExpectedResult, resource: str, result: RuleResult, problem: tuple[str, str] | None) -> Row:
    rule = row.rule or result.rule_name
    if problem is not None:
        return Row(row.policy, rule, resource, "Fail", problem[0], problem[1], expected=row)
    status = reported_status(result)
    if status.value != row.result.value:
        reason = f"Want {row.result.value}, got {status.value}"
        return Row(row.policy, rule, resource, "Fail", reason, result.message, expected=row)
    return Row(row.policy, rule, resource, "Pass", "Ok", result.message, expected=row)


def _object_after(subject: Subject, policy: CompiledPolicy, result: RuleResult) -> JSON:
    """Return the object as the policy left it, changed or not."""
    if subject.is_target:
        return subject.document
    if result.target is not None:
        return result.patched
    current: JSON = subject.document
    reached = False
    for other in subject.judged.review.results:
        own = other.rule.policy is policy.info
        if reached and not own and other.patched is not None and other.target is None:
            break
        reached = reached or own
        if other.patched is not None and other.target is None:
            current = other.patched
    return current


def missing_files(suite: Suite, rows: Iterable[Row]) -> list[PyvernoError]:
    """Return an error for each missing file of expected objects that no row has reported.

    Kyverno passes over it when the resource of its row is excluded.
    """
    names: dict[str, None] = {}
    for row in rows:
        if row.reason == _EXCLUDED and row.expected is not None:
            expected = row.expected
            names |= dict.fromkeys(expected.object_files)
    paths = [suite.folder / name for name in names]
    return [UsageError(f"`{path}` does not exist", location=Location(str(path))) for path in paths if not path.exists()]


def expected_objects(suite: Suite, name: str) -> Mapping[ResourceRef, Sequence[JSONObject]]:
    """Return the expected objects of a file, which is read once, by their references; raises PyvernoError."""
    if name in suite.expected:
        return suite.expected[name]
    loaded = load_files([str(suite.folder / name)])
    raise_all(loaded.errors)
    found: dict[ResourceRef, list[JSONObject]] = {}
    for document in loaded.documents:
        if isinstance(document.value, dict):
            body = normalise(document.value, suite.session.kinds)
            found.setdefault(ResourceRef.of(body), []).append(body)
    suite.expected[name] = found
    return found


def _patched_problem(suite: Suite, row: ExpectedResult, actual: JSON) -> tuple[str, str] | None:
    """Compare with the object of the same identity in the expected file; `missing` when the file has none."""
    try:
        documents = expected_objects(suite, row.patched_resources)
    except PyvernoError as error:
        return "Resource error", f"error: failed to load PatchedResources resource ({error})"
    ref = ResourceRef.of(actual)
    for document in documents.get(ref, ())[:1]:
        if equal(tidy(document), tidy(actual)):
            return None
        text = "Patched resource didn't match the patched resource in the test result"
        return "Resource diff", f"{text}\n{_LEGEND}\n\n{yaml_diff(document, actual)}"
    if row.fail_on_missing_resources:
        return "Resource error", f"the expected file has no {ref.kind} {ref.namespace}/{ref.name}"
    return "missing", ""


def _generated_text(resource: JSONObject) -> str:
    view = Resource(resource)
    return f"{view.api_version}/{view.kind}/{view.namespace}/{view.name}"


def _generated_problem(suite: Suite, row: ExpectedResult, actual: JSONObject) -> tuple[str, str] | None:
    names = [name for name in (row.generated_resource, *row.generated_resources) if name]
    if not names:
        return None
    try:
        files = [expected_objects(suite, name) for name in names]
    except PyvernoError as error:
        return "Resource error", f"error: failed to load GeneratedResource resource ({error})"
    ref = ResourceRef.of(actual)
    same = [document for file in files for document in file.get(ref, ())]
    if any(equal(tidy(document), tidy(actual)) for document in same):
        return None
    others = (document for file in files for documents in file.values() for document in documents)
    closest = same[0] if same else next(others, {})
    text = "Patched resource didn't match the generated resource in the test result"
    if sum(len(documents) for file in files for documents in file.values()) > 1:
        text = "Generated resource didn't match any of the expected generated resources in the test result"
    return "Resource diff", f"{text}\n{_LEGEND}\n\n{yaml_diff(closest, actual)}"
