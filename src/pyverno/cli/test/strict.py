"""Strict mode of `pyverno test`: checks of a suite that prove nothing.

Kyverno lets such rows pass or drops them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyverno.cli.test.check import Row, expected_objects, is_named, subjects_of
from pyverno.cli.test.suite import ReviewedManifest, Suite
from pyverno.engine.effects import CreateEffect
from pyverno.engine.result import ResourceRef
from pyverno.errors import PyvernoError
from pyverno.offline.testfile import ExpectedResult
from pyverno.policy.kinds import RULE_KINDS

__all__ = ["missing_rule", "vacuous_checks"]


def vacuous_checks(
    suite: Suite, judged: Sequence[ReviewedManifest], rows: Sequence[Row], asked: Sequence[ExpectedResult]
) -> Iterator[str]:
    """Yield one line for each check of a suite that proves nothing."""
    if not suite.test.results:
        yield "the test has no results"
    for number, expected in enumerate(asked):
        own = [row for row in rows if row.expected is expected]
        where = f"{expected.policy}/{expected.rule}" if expected.rule else expected.policy
        missing = missing_rule(suite, expected)
        for problem in (
            *([missing] if missing else _silent_rows(own)),
            *_unknown_resources(suite, judged, expected),
            *_never_generated(suite, judged, expected),
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


def _unknown_resources(suite: Suite, judged: Sequence[ReviewedManifest], expected: ExpectedResult) -> Iterator[str]:
    subjects = list(subjects_of(judged))
    if not subjects and suite.manifests:
        return  # no policy ran, which other lines report
    for name in expected.resources:
        only = ExpectedResult(expected.policy, expected.result, resources=(name,))
        if not any(is_named(subject, only) for subject in subjects):
            yield f"no resource is named `{name}`"
    for spec in expected.resource_specs if expected.resources else ():
        only = ExpectedResult(expected.policy, expected.result, resource_specs=(spec,))
        if not any(is_named(subject, only) for subject in subjects):
            yield f"no resource is `{spec.kind} {spec.namespace}/{spec.name}`"


def _never_generated(suite: Suite, judged: Sequence[ReviewedManifest], expected: ExpectedResult) -> Iterator[str]:
    """Name the expected objects that no rule of the policy created."""
    names = [name for name in (expected.generated_resource, *expected.generated_resources) if name]
    if not names:
        return
    created = {
        ResourceRef.of(effect.resource)
        for item in judged
        for result in item.review.results
        if result.rule.policy.name == expected.policy_name
        for effect in result.effects
        if isinstance(effect, CreateEffect)
    }
    for name in names:
        try:
            documents = expected_objects(suite, name)
        except PyvernoError as error:
            yield str(error)
            continue
        for document in documents:
            ref = ResourceRef.of(document)
            if ref not in created:
                yield f"`{name}`: `{ref}` was not generated"
