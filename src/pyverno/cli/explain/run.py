"""One run of `pyverno explain`: read, explain, print, and the exit code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pyverno.cli.apply.load import load_inputs, open_session
from pyverno.cli.apply.options import ApplyOptions, check_options
from pyverno.cli.errors import check_known, report_error, report_warning
from pyverno.cli.skipped import report_links
from pyverno.cli.style import Style, style_for
from pyverno.cli.terminal import STDOUT
from pyverno.engine.explain.change import Change
from pyverno.engine.explain.explanation import Explanation
from pyverno.engine.explain.nodes import RuleTrace
from pyverno.engine.request import Operation
from pyverno.engine.result import ResourceRef, RuleResult, Status
from pyverno.engine.rule import RuleInfo
from pyverno.errors import PyvernoError, UsageError
from pyverno.kube.json import JSON, JSONObject, encode_indent
from pyverno.kube.yaml.documents import Document
from pyverno.kube.yaml.writer import dump_yaml
from pyverno.offline.session import Session
from pyverno.report.explanation import Line, Places, change_lines, rule_lines
from pyverno.report.problem import problems_of
from pyverno.report.ruleplaces import RulePlaces
from pyverno.sinks.characters import block, one_line
from pyverno.value import dataclass, field

__all__ = ["ExplainOptions", "run_explain"]

_BAD = (Status.FAIL, Status.ERROR, Status.WARN)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainOptions:
    """The flags of the command; `inputs` are those shared with `apply`, by field."""

    policies: tuple[str, ...]
    inputs: Mapping[str, Any] = field(default_factory=dict)
    rules: tuple[str, ...] = ()
    shows_all: bool = False
    operation: str = "CREATE"
    output: str = "text"
    skips_change: bool = False
    remove_color: bool = False


def run_explain(options: ExplainOptions) -> int:
    """Explain every resource and return the exit code; raises UsageError for flags that cannot be used."""
    given = ApplyOptions(policies=options.policies, **options.inputs)
    for text in check_options(given):
        report_warning(text)
    inputs = load_inputs(given)
    report_links(inputs.skipped)
    session = open_session(inputs)
    _check_rules(options.rules, session)
    problems = [*inputs.errors, *session.errors]
    if not problems and not session.policies:
        problems.append(UsageError("there is no policy, so that nothing is explained"))
    if not problems and not inputs.manifests:
        problems.append(UsageError("there is no resource, so that nothing is explained"))
    for error in problems:
        report_error(error)
    run = _Run(options, session)
    if session.policies:
        for document, manifest in zip(inputs.resources, inputs.manifests, strict=True):
            run.explain(document, manifest)
    run.finish(problems)
    return 1 if problems or run.is_bad else 0


def _check_rules(wanted: Sequence[str], session: Session) -> None:
    """Raise UsageError for a name of `--rule` that no rule of the policies has."""
    known = [name for policy in session.policies for rule in policy.rules for name in _names(rule.info)]
    check_known(wanted, known if session.policies else wanted, "rule")


def _names(info: RuleInfo) -> tuple[str, ...]:
    """Return the names by which `--rule` chooses a rule; a policy with one check has rules without a name."""
    return (info.name, f"{info.policy.key}/{info.name}") if info.name else (info.policy.key,)


class _Run:
    """Explains one resource after the other and prints it, or collects it for a machine."""

    def __init__(self, options: ExplainOptions, session: Session) -> None:
        self._options = options
        self._session = session
        self._style = style_for(STDOUT, remove_color=options.remove_color)
        self._found: list[JSON] = []
        self._places = RulePlaces(session.compilation)
        self.is_bad = False

    def explain(self, document: Document, manifest: JSONObject) -> None:
        operation = Operation(self._options.operation)
        places = Places(document.location, self._places.find)
        shown = 0
        if self._options.output == "text":
            STDOUT.write(one_line(f"{ResourceRef.of(manifest)}  ({document.location()})") + "\n")
        for explanation in self._session.explain(manifest, operation=operation):
            for trace in self._choose(explanation):
                shown += 1
                self._show(explanation, trace, places, manifest)
        if not shown and self._options.output == "text":
            STDOUT.write("  no rule matches (--all shows why)\n")

    def finish(self, problems: Sequence[PyvernoError]) -> None:
        """Print the collected explanations as one document, with the errors of inputs."""
        found = {"explanations": self._found, "errors": [each.to_json() for each in problems_of(problems)]}
        if self._options.output == "json":
            STDOUT.write(encode_indent(found) + "\n")
        elif self._options.output == "yaml":
            STDOUT.write(dump_yaml(found, sort_keys=False))

    def _choose(self, explanation: Explanation) -> Iterator[RuleTrace]:
        wanted = self._options.rules
        for trace in explanation.rules:
            if wanted and not any(name in wanted for name in _names(trace.rule)):
                continue
            if trace.matched or self._options.shows_all or (wanted and not trace.rule.origin):
                yield trace

    def _show(self, explanation: Explanation, trace: RuleTrace, places: Places, manifest: JSONObject) -> None:
        failed = next((result for result in trace.results if result.status in _BAD), None)
        self.is_bad = self.is_bad or failed is not None
        change = None if failed is None or self._options.skips_change else explanation.change(failed)
        if self._options.output == "text":
            self._print(rule_lines(trace, places))
            if failed is not None and not self._options.skips_change:
                self._print(change_lines(change, places))
            return
        rule = explanation.rule_json(trace)
        rule["resource"] = str(ResourceRef.of(manifest))
        for name, location in (("location", places.of_rule(trace, ())), ("resourceLocation", places.of_object(()))):
            rule[name] = None if location is None else str(location)
        rule["change"] = None if change is None else _change_json(change, failed)
        self._found.append(rule)

    def _print(self, lines: Iterator[Line]) -> None:
        style: Style = self._style
        for line in lines:
            margin = "  " * (line.depth + 1)
            text = block(line.text, f"{margin}  ")
            if line.word:
                painted = style.result(line.word)
                text = painted.replace(line.word, text, 1) if painted != line.word else text
            place = one_line(f"  ({line.place})") if line.place is not None and line.place.line else ""
            STDOUT.write(f"{margin}{text}{place}\n")


def _change_json(change: Change, failed: RuleResult | None) -> JSON:
    return {
        "from": failed.status.value if failed is not None else "",
        "to": change.status.value,
        "patch": [*change.patch],
    }
