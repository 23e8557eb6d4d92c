"""Strict mode of `pyverno test`: checks of a suite that prove nothing.

Kyverno lets such rows pass or drops them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pyverno.cli.test.check import Row, expected_objects
from pyverno.cli.test.subjects import Subjects
from pyverno.cli.test.suite import ReviewedManifest, Suite
from pyverno.engine.effects import CreateEffect
from pyverno.engine.result import ResourceRef
from pyverno.errors import PyvernoError
from pyverno.offline.testfile import ExpectedResult
from pyverno.policy.kinds import RULE_KINDS

__all__ = ["missing_rule", "unknown_resources", "vacuous_checks"]


def vacuous_checks(
    suite: Suite, judged: Sequence[ReviewedManifest], rows: Sequence[Row], asked: Sequence[ExpectedResult]
) -> Iterator[str]:
    """Yield one line for each check of a suite that proves nothing."""
    if not suite.test.results:
        yield "the test has no results"
    subjects, made, by_row = Subjects(judged), _Made(suite, judged), _by_expected(rows)
    for number, expected in enumerate(asked):
        own = by_row.get(id(expected), ())
        where = f"{expected.policy}/{expected.rule}" if expected.rule else expected.policy
        missing = missing_rule(suite, expected)
        for problem in (
            *([missing] if missing else _silent_rows(own)),
            *unknown_resources(suite, subjects, expected),
            *made.problems(expected),
        ):
            yield f"{_place(suite, expected, number)}{where}: {problem}"


def _place(suite: Suite, expected: ExpectedResult, number: int) -> str:
    line = suite.test.document.location(expected.path).line if expected.path else 0
    return f"line {line}: " if line else f"results[{number}]: "


def _silent_rows(rows: Sequence[Row]) -> Iterator[str]:
    if not rows:
        yield "no resource was checked"
    for row in rows:
        if row.vacuous:
            yield f"`{row.resource}`: {row.vacuous}"


def missing_rule(suite: Suite, expected: ExpectedResult) -> str:
    """Report that none of the policies of this name has the rule."""
    policies = [each for each in suite.compilation.policies if each.info.name == expected.policy_name]
    if not expected.rule or not policies or any(each.info.kind not in RULE_KINDS for each in policies):
        return ""
    names = {rule.info.name for policy in policies for rule in policy.rules}
    wanted = (expected.rule, f"autogen-{expected.rule}", f"autogen-cronjob-{expected.rule}")
    return "" if names.intersection(wanted) else f"the policy has no rule `{expected.rule}`"


def unknown_resources(suite: Suite, subjects: Subjects, expected: ExpectedResult) -> Iterator[str]:
    """Name the resources of a row that the suite does not have."""
    if not subjects.all and suite.manifests:
        return  # no policy ran, which other lines report
    for name in expected.resources:
        if not subjects.has_name(name):
            yield f"no resource is named `{name}`"
    for spec in expected.resource_specs if expected.resources else ():
        if not subjects.has_resource(spec):
            yield f"no resource is `{spec.kind} {spec.namespace}/{spec.name}`"


class _Made:
    """What rules created, and the expected objects that they did not create; each file is compared once."""

    def __init__(self, suite: Suite, judged: Iterable[ReviewedManifest]) -> None:
        self._suite = suite
        self._problems: dict[tuple[str, str], tuple[str, ...]] = {}
        self._created: dict[str, set[ResourceRef]] = {}
        for item in judged:
            for result in item.review.results:
                refs = [ResourceRef.of(each.resource) for each in result.effects if isinstance(each, CreateEffect)]
                self._created.setdefault(result.rule.policy.name, set()).update(refs)

    def problems(self, expected: ExpectedResult) -> Iterator[str]:
        """Name the expected objects of a row that no rule of the policy created."""
        for name in (expected.generated_resource, *expected.generated_resources):
            key = (expected.policy_name, name)
            if name and key not in self._problems:
                self._problems[key] = tuple(self._missing(*key))
            yield from self._problems.get(key, ())

    def _missing(self, policy: str, name: str) -> Iterator[str]:
        try:
            objects = expected_objects(self._suite, name)
        except PyvernoError as error:
            yield str(error)
            return
        created = self._created.get(policy, set())
        for ref, documents in objects.items():
            if ref not in created:
                yield from (f"`{name}`: `{ref}` was not generated" for _ in documents)


def _by_expected(rows: Iterable[Row]) -> dict[int, list[Row]]:
    """Return rows by the identity of the entry that they come from."""
    found: dict[int, list[Row]] = {}
    for row in rows:
        found.setdefault(id(row.expected), []).append(row)
    return found
