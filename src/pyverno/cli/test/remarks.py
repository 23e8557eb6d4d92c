"""Remarks about rows that have no result: their policy is not valid, or the suite has nothing of that name.

The table shows such rows as Kyverno does, as `Invalid Policy` and `Not found`; the remarks say why.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pyverno.cli.test.check import NOT_FOUND, Row
from pyverno.cli.test.strict import missing_rule, unknown_resources
from pyverno.cli.test.subjects import Subjects
from pyverno.cli.test.suite import ReviewedManifest, Suite
from pyverno.offline.testfile import ExpectedResult
from pyverno.offline.values import Values
from pyverno.spelling import did_you_mean

__all__ = ["invalid_policies", "reasons_not_found"]


def invalid_policies(suite: Suite) -> Iterator[str]:
    """Yield each error of the policies that are not valid."""
    for name, item in suite.invalid.items():
        yield from (
            f"the policy `{name}` is not valid, so that its rows prove nothing: {error}" for error in item.errors
        )


def reasons_not_found(suite: Suite, judged: Iterable[ReviewedManifest], rows: Iterable[Row]) -> Iterator[str]:
    """Yield the reasons why rows were not found, each once."""
    expected = {id(row.expected): row.expected for row in rows if row.expected and row.reason == NOT_FOUND}
    subjects = Subjects(judged if expected else ())
    reasons: dict[str, None] = {}
    for each in expected.values():
        where = f"{each.policy}/{each.rule}" if each.rule else each.policy
        is_known = not each.resources or subjects.has_any_of(each)
        reasons[f"{where}: {_reason(suite, each, is_known=is_known)}"] = None
    yield from reasons


def unknown_names(
    suite: Suite, judged: Iterable[ReviewedManifest], rows: Iterable[Row], asked: Iterable[ExpectedResult]
) -> Iterator[str]:
    """Yield the rules and resources of rows that the suite does not have, where a row has a result all the same.

    Kyverno: a row none of whose resources exist is a row about all resources.
    """
    reasons = {id(row.expected): row.reason for row in rows}
    subjects = Subjects(judged)
    lines: dict[str, None] = {}
    for expected in asked:
        if reasons.get(id(expected)) == NOT_FOUND:
            continue  # `reasons_not_found`
        where = f"{expected.policy}/{expected.rule}" if expected.rule else expected.policy
        missing = missing_rule(suite, expected)
        for text in (*([missing] if missing else ()), *unknown_resources(suite, subjects, expected)):
            lines[f"{where}: {text}"] = None
    yield from lines


def unused_names(suite: Suite) -> Iterator[str]:
    """Yield the names in the values of a suite that nothing of it has."""
    values = suite.session.values
    if values == Values():
        return
    from pyverno.cli.unusednames import unused_values  # few suites have values

    yield from unused_values(values, suite.test.variables or "values", suite.session, suite.manifests)


def _reason(suite: Suite, row: ExpectedResult, *, is_known: bool) -> str:
    names = {item.written.name for item in suite.compilation.items if item.written is not None}
    if row.policy_name not in names:
        return f"the test loads no policy `{row.policy_name}`{did_you_mean(row.policy_name, names)}"
    if missing := missing_rule(suite, row):
        return missing
    if not is_known:
        return f"no resource is named {', '.join(f'`{name}`' for name in row.resources)}"
    return "the policy has no result for the resource; `pyverno explain --all` shows why a rule does not match"
