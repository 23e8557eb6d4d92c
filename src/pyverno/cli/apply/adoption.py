"""Accepted failures of a run: suppressed in a manifest, known to a baseline, or below `--fail-on`.

Accepted failures are skips with the reason, failures below the threshold warnings. Errors stay errors: a check that
could not be made is never accepted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from pyverno.cli.apply.judge import PAYLOAD, JudgedResource
from pyverno.cli.apply.options import ApplyOptions
from pyverno.cli.errors import report_note
from pyverno.cli.terminal import STDOUT
from pyverno.engine.result import FailureAction, PatternDetail, RuleResult, RuleType, Status
from pyverno.engine.rule import Family, PolicyInfo, RuleInfo
from pyverno.errors import UsageError
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.yaml.fieldpath import Path
from pyverno.offline.adoption.baseline import Baseline
from pyverno.offline.adoption.suppressions import Suppression, SuppressionReader
from pyverno.offline.session import Session
from pyverno.report.finding import Finding, finding
from pyverno.report.identity import identity
from pyverno.value import replace

if TYPE_CHECKING:
    from pyverno.offline.adoption.schemacheck import SchemaCheck

__all__ = ["Adoption", "own_result"]

_ACCEPTABLE: Final = (Status.FAIL, Status.WARN)
_SEVERITIES: Final = ("info", "low", "medium", "high", "critical")
_POLICY: Final = PolicyInfo("ClusterPolicy", "kyverno.io/v1", "pyverno", Family.RULES, source="pyverno")
_SHOWN: Final = 20
MOST_CUTS: Final = 100
"""The number of evaluations of a rule that look for failures beyond the suppressed ones of one object."""


def own_result(rule: str, status: Status, message: str, path: Path = ()) -> RuleResult:
    """Return a result of pyverno itself for a field of a resource, under the policy name `pyverno`."""
    info = RuleInfo(_POLICY, rule, RuleType.VALIDATION)
    written = "".join(f"/{step}" for step in path) + "/"
    return RuleResult(info, FailureAction.AUDIT, status, message, PatternDetail(written))


class Adoption:
    """Accepts failures of one run, and reports in the end which entries are out of date."""

    def __init__(self, options: ApplyOptions, session: Session, crds: Sequence[JSONObject] = ()) -> None:
        self._options = options
        self._session = session
        self._today = datetime.now(UTC).date()
        self._schemas: SchemaCheck | None = None
        if options.validate_schemas:
            from pyverno.offline.adoption.schemacheck import SchemaCheck  # its schemas take time to unpack

            self._schemas = SchemaCheck(crds)
        self._baseline = (
            Baseline.read(options.baseline, may_be_missing=options.update_baseline) if options.baseline else None
        )
        self._least = _SEVERITIES.index(options.fail_on) if options.fail_on else 0
        self._policies = {name for policy in session.policies for name in (policy.info.name, policy.info.key)}
        if self._schemas is not None:
            self._policies.add(_POLICY.name)
        self._suppressed = 0
        self._reader = SuppressionReader()

    def accept(self, item: JudgedResource) -> JudgedResource:
        """Return a resource with the results that count."""
        results = item.results
        if self._schemas is not None:
            results += tuple(
                own_result(each.rule, Status.FAIL, each.message, each.path)
                for each in self._schemas.mismatches(item.document.value)
            )
        blamed: dict[tuple[str, str], Path] = {}
        if not self._options.no_suppressions:
            results = self._without_suppressed(item, results, blamed)
        if blamed:
            item = replace(item, blamed=blamed)
        if self._baseline is not None:
            results = tuple(self._accept_known(item, result, self._baseline) for result in results)
        if self._least:
            results = tuple(self._lower(result) for result in results)
        return item if results is item.results else replace(item, results=results)

    def _without_suppressed(
        self, item: JudgedResource, results: tuple[RuleResult, ...], blamed: dict[tuple[str, str], Path]
    ) -> tuple[RuleResult, ...]:
        found, mistakes = self._reader.read(item.document)
        if not found and not mistakes:
            return results
        own = [own_result("malformed-suppression", Status.WARN, each.message, each.path) for each in mistakes]
        used: set[tuple[int, str]] = set()
        kept: list[RuleResult] = []
        for result in results:
            if result.status not in _ACCEPTABLE:
                kept.append(result)
                continue
            path = _steps(self._finding(item, result))
            holding = self._holding(found, result, path, used)
            beyond = None
            if holding is not None and holding.path and result.rule.policy is not _POLICY:
                beyond = self._beyond(item, result, path, found, used)
            if beyond is not None:
                blamed[result.rule.policy.key, result.rule.name] = beyond[1]
                kept.append(beyond[0])
                continue
            kept.append(result if holding is None else _accepted(result, "suppressed", holding.reason))
            self._suppressed += holding is not None
        own += self._out_of_date(found, used)
        return (*kept, *own)

    def _holding(
        self, found: Sequence[Suppression], result: RuleResult, path: Path, used: set[tuple[int, str]]
    ) -> Suppression | None:
        """Return the suppression that accepts a failure; every matching one counts as used."""
        fitting = [(at, name) for at, each in enumerate(found) if (name := each.name_for(result.rule, path))]
        used.update(fitting)
        return next((found[at] for at, _ in fitting if self._holds(found[at])), None)

    def _beyond(
        self,
        item: JudgedResource,
        result: RuleResult,
        path: Path,
        found: Sequence[Suppression],
        used: set[tuple[int, str]],
    ) -> tuple[RuleResult, Path] | None:
        """Return the failure of a rule outside suppressed parts, with its field; None without one.

        A rule reports its first failure only, so the rule is evaluated again without the suppressed parts, at most
        `MOST_CUTS` times: a further failure counts.
        """
        cuts: set[Path] = set()
        holding = self._holding(found, result, path, used)
        while holding is not None:
            cut = _cut(path, holding.path)
            if cut in cuts:
                return None  # the suppressed part is missing now, and nothing else
            if len(cuts) >= MOST_CUTS:
                break
            cuts.add(cut)
            rest = without(item.manifest, cuts)
            is_payload = item.payload_kind == PAYLOAD
            review = self._session.payload(rest) if is_payload else self._session.review(rest)
            again = next((each for each in review.results if _is_same(each, result)), None)
            if again is None:
                return None
            if again.status not in _ACCEPTABLE:
                return again, path
            path = original(_steps(self._finding(replace(item, resource=review.resource), again)), cuts)
            holding = self._holding(found, result, path, used)
            result = again
        return result, path

    def _holds(self, each: Suppression) -> bool:
        has_reason = bool(each.reason) or not self._options.require_reason
        return has_reason and (each.until is None or self._today <= each.until)

    def _out_of_date(self, found: Sequence[Suppression], used: set[tuple[int, str]]) -> Iterator[RuleResult]:
        for at, each in enumerate(found):
            if self._options.require_reason and not each.reason:
                message = f"the suppression at {each.location} has no reason"
                yield own_result("suppression-without-reason", Status.FAIL, message, each.path)
            for name in each.names:
                if self._policies.isdisjoint((name, name.partition("/")[0], name.rpartition("/")[0])):
                    continue  # its policy is not part of this run
                if (at, name) not in used:
                    message = f"the suppression of `{name}` at {each.location} is not used"
                    yield own_result("unused-suppression", Status.WARN, message, each.path)
                elif each.until is not None and self._today > each.until:
                    message = f"the suppression of `{name}` at {each.location} has expired on {each.until}"
                    yield own_result("expired-suppression", Status.WARN, message, each.path)

    def _accept_known(self, item: JudgedResource, result: RuleResult, baseline: Baseline) -> RuleResult:
        if result.status not in _ACCEPTABLE:
            return result
        is_known = baseline.take(identity(self._finding(item, result)))
        return _accepted(result, "in the baseline") if is_known or self._options.update_baseline else result

    def _lower(self, result: RuleResult) -> RuleResult:
        if result.status is not Status.FAIL:
            return result
        severity = result.rule.policy.annotations.get("policies.kyverno.io/severity", "")
        # a failure of a policy without severity always counts
        is_low = severity in _SEVERITIES and _SEVERITIES.index(severity) < self._least
        return result._replace(status=Status.WARN) if is_low else result

    def _finding(self, item: JudgedResource, result: RuleResult) -> Finding:
        blamed = None
        if result.target is None:
            blamed = self._session.blame(item.resource, result, is_payload=item.payload_kind == PAYLOAD)
        return finding(result, item.ref, item.document, blamed=blamed)

    def finish(self, *, has_problems: bool, is_partial: bool) -> None:
        """Write the baseline, or list its outdated entries; raises UsageError if the run is too incomplete for that.

        `is_partial` is set when not all resources were judged.
        """
        STDOUT.flush()  # notes come after the results
        if self._suppressed:
            report_note(f"{_count(self._suppressed, 'failure')} suppressed in manifests")
        baseline = self._baseline
        if baseline is None:
            return
        if self._options.update_baseline:
            if has_problems:
                raise UsageError("the baseline is not written: the run has errors, and would leave something out")
            written = baseline.write(self._options.baseline)
            report_note(f"wrote {written} {'failure' if written == 1 else 'failures'} to `{self._options.baseline}`")
            return
        if baseline.used:
            report_note(f"{_count(baseline.used, 'failure')} in the baseline")
        gone = [] if is_partial or has_problems else baseline.gone
        if gone:
            report_note(f"{_count(len(gone), 'failure')} of the baseline gone (--update-baseline removes them):")
            for rule, kind, namespace, name, field in gone[:_SHOWN]:
                place = "/".join(part for part in (namespace, kind, name) if part)
                report_note(f"  {rule} {place} {field}".rstrip())
            if len(gone) > _SHOWN:
                report_note(f"  and {len(gone) - _SHOWN} more")


def _accepted(result: RuleResult, how: str, reason: str = "") -> RuleResult:
    text = f"{how}: {reason}" if reason else how
    message = f"{text} ({result.message})" if result.message else text
    return result._replace(status=Status.SKIP, message=message)


def _is_same(each: RuleResult, result: RuleResult) -> bool:
    is_rule = each.rule.policy.key == result.rule.policy.key and each.rule.name == result.rule.name
    return is_rule and each.status not in (Status.PASS, Status.SKIP)


def _cut(path: Path, suppressed: Path) -> Path:
    """Return the suppressed part, or the list element around a field, to search for failures outside it."""
    at = next((at for at in range(len(suppressed), 0, -1) if isinstance(path[at - 1], int)), 0)
    return path[:at] if at else suppressed


def without(value: JSON, cuts: Collection[Path]) -> JSON:
    """Return a value without the parts at some paths.

    >>> without({"a": [1, 2], "b": 3}, [("a", 0), ("b",)])
    {'a': [2]}
    """
    below: dict[str | int, list[Path]] = {}
    for cut in cuts:
        below.setdefault(cut[0], []).append(cut[1:])
    gone = {step for step, rest in below.items() if () in rest}
    if isinstance(value, dict):
        kept = ((key, each) for key, each in value.items() if key not in gone)
        return {key: without(each, below[key]) if key in below else each for key, each in kept}
    if isinstance(value, list):
        items = ((at, each) for at, each in enumerate(value) if at not in gone)
        return [without(each, below[at]) if at in below else each for at, each in items]
    return value


def original(path: Path, cuts: Collection[Path]) -> Path:
    """Return the path in a value for a path in the same value without some list elements.

    >>> original(("a", 0, "x"), [("a", 0), ("a", 1)])
    ('a', 2, 'x')
    """
    found: Path = ()
    for step in path:
        if isinstance(step, int):
            at = 0
            left = step
            while left or (*found, at) in cuts:
                left -= (*found, at) not in cuts
                at += 1
            found = (*found, at)
        else:
            found = (*found, step)
    return found


def _steps(found: Finding) -> Path:
    return tuple(int(step) if step.isascii() and step.isdigit() else step for step in found.path.split("/") if step)


def _count(number: int, what: str) -> str:
    return f"{number} {what} is" if number == 1 else f"{number} {what}s are"
