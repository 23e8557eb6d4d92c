"""The output of `pyverno apply`: header, changed and generated objects, violations, table, reports, summary.

Results go to stdout and everything else to stderr if the output is for machines. Texts are those of Kyverno's command
line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby, islice
from typing import TYPE_CHECKING

from pyverno.cli.apply.judge import JudgedResource
from pyverno.cli.apply.options import ApplyOptions
from pyverno.cli.errors import can_show, report_error
from pyverno.cli.style import style_for
from pyverno.cli.terminal import STDERR, Stream
from pyverno.engine.effects import CreateEffect
from pyverno.engine.result import FailureAction, ResourceRef, RuleResult, RuleType, Status
from pyverno.engine.rule import PolicyInfo, Stage
from pyverno.errors import NOWHERE
from pyverno.kube.json import JSON, JSONObject
from pyverno.offline.session import Session
from pyverno.policy.kinds import RULE_KINDS
from pyverno.report.summary import reported_status

if TYPE_CHECKING:
    from pathlib import Path

    from pyverno.cli.apply.files import ObjectFiles
    from pyverno.cli.apply.outcome import Outcome
    from pyverno.compiler.lints.lint import Diagnostic

__all__ = ["Output"]

DIVIDER = "-" * 70
_PASS = Status.PASS
_MUTATING = frozenset({Stage.MUTATE, Stage.MUTATE_EXISTING})
_ELEMENT_VARIABLE = "variable 'element.name'"


class Output:
    """Prints one run to a stream."""

    def __init__(self, options: ApplyOptions, session: Session, stream: Stream) -> None:
        self._options = options
        self._session = session
        self._stream = stream
        self._log = STDERR if options.is_machine_output else stream
        path = options.output_path
        self._files = _files(path) if path is not None else None
        self._mutating = [
            policy.info for policy in session.policies if any(rule.stage in _MUTATING for rule in policy.rules)
        ]
        self._has_objects = bool(self._mutating) or any(
            rule.stage is Stage.GENERATE for policy in session.policies for rule in policy.rules
        )
        self._refused = [item for item in session.compilation.items if item.errors]

    @property
    def refused(self) -> int:
        """Number of documents that are not valid policies; they count as errors and are not used."""
        return len(self._refused)

    @property
    def has_objects(self) -> bool:
        """Whether some policy changes or creates objects."""
        return self._has_objects

    @property
    def rules(self) -> int:
        """Number of rules; a policy in CEL counts as one."""
        return sum(len(each.rules) if each.info.kind in RULE_KINDS else 1 for each in self._session.policies)

    def header(self, resources: int) -> None:
        """Print the numbers of rules and resources."""
        if self._options.is_machine_output or self._options.quiet:
            return
        session, rules = self._session, self.rules
        if self._options.is_kyverno:
            # COMPAT: Kyverno also counts the rules of policies that it skips
            skipped = (item.policy for item in self._refused if item.policy is not None)
            rules += sum(len(each.rules) if each.info.kind in RULE_KINDS else 1 for each in skipped)
        with_exceptions = f" with {len(session.exceptions)} exception(s)" if session.exceptions else ""
        self._line(f"\nApplying {rules} policy rule(s) to {resources} resource(s){with_exceptions}...")

    def changes(self, item: JudgedResource) -> None:
        """Print or write the objects that mutate and generate rules made from a resource."""
        if not self._has_objects:
            return
        path = _path(item.ref)
        current: JSON = item.manifest
        for policy in self._mutating:
            own = [
                result
                for result in item.results
                if result.rule.type is RuleType.MUTATION and result.rule.policy.key == policy.key
            ]
            current = self._print_mutated(policy, path, own, current)
        for result in item.results:
            for effect in result.effects:
                if isinstance(effect, CreateEffect):
                    self._print_generated(result.rule.policy.name, path, effect.resource)
        if self._options.stdin and item.resource is not item.manifest and isinstance(item.resource, dict):
            self._yaml(item.resource)

    def _print_mutated(self, policy: PolicyInfo, path: str, results: Sequence[RuleResult], current: JSON) -> JSON:
        """Show the object as a policy left it, changed or not, and the targets it patched; return the object.

        Kyverno shows the object for policies with rules even without a match, for CEL policies only with one, and for
        neither after an error.
        """
        passed = [result for result in results if result.status is Status.PASS]
        patched = (result.patched for result in reversed(passed) if result.target is None)
        own: JSON = next((document for document in patched if document is not None), current)
        targets = [result.patched for result in passed if result.target is not None]
        has_failed = any(result.status is Status.ERROR for result in results)
        if not results and policy.kind not in RULE_KINDS:
            return own
        is_shown = not has_failed
        if self._files is not None:
            if is_shown:
                self._files.write_mutated(own, path.split("/", 2)[-1])
                for document in targets:
                    self._files.write_mutated(document)
        elif self._options.stdin:
            for target in targets:
                self._yaml(target)
        elif is_shown and not self._options.is_machine_output:
            self._line(f"\npolicy {_name(policy.name)} applied to {_name(path)}:\n{_yaml_text(own)}\n---")
            if targets:
                self._line("patched targets: ")
                for target in targets:
                    self._line(f"\n{_yaml_text(target)}\n---\n")
        # COMPAT: Kyverno's command line prints it above an error, too
        if not self._options.is_machine_output and (is_shown or self._options.is_kyverno):
            self._stream.write("\n\nMutation:\nMutation has been applied successfully.")
        return own

    def _print_generated(self, policy: str, path: str, resource: JSONObject) -> None:
        if self._files is not None:
            self._files.write_generated(policy, resource)
        elif self._options.stdin:
            self._yaml(resource)
        elif not self._options.is_machine_output:
            self._line(f"\npolicy {_name(policy)} applied to {_name(path)}:\n{_yaml_text(resource)}\n---")
        if not self._options.is_machine_output:
            self._stream.write("\n\nGenerate:\nGeneration completed successfully.")

    def results(
        self,
        judged: Iterable[JudgedResource],
        outcome: Outcome,
        lints: Sequence[Diagnostic] = (),
    ) -> None:
        """Print the results in the selected format, and the problems of the run where the format has room for them.

        The results are read one by one, and printed when all of them are known. `lints` are mistakes that were found in
        the policies.
        """
        options = self._options
        errors: list[str] = []
        results = self._noted(judged, outcome, errors)
        if options.policy_report or options.generate_exceptions:
            from pyverno.cli.apply.reports import print_exceptions, print_reports

            (print_reports if options.policy_report else print_exceptions)(options, results, outcome, self._stream)
        elif options.format != "text":
            from pyverno.cli.apply.reports import print_findings

            print_findings(options, results, self._session, outcome, self._stream, lints=lints)
        elif options.table and not options.stdin:
            self._table(results, outcome)
        elif options.is_kyverno:
            from pyverno.report.packed import packed

            none: list[str] = []
            blocks = (block for item in results for block in outcome.step(item, self._violations, none))
            self._log.writelines(packed(blocks))
            self._log.write(f"\n{outcome.summary} \n")
        else:
            self._print_text(judged, outcome)
            return
        if not options.table:
            for text in errors:
                report_error(text)

    def _noted(self, judged: Iterable[JudgedResource], outcome: Outcome, errors: list[str]) -> Iterator[JudgedResource]:
        """Yield the resources, and keep the errors of rules; what Kyverno prints before the results comes at the end.

        Errors go to stderr after the results; Kyverno only counts them.
        """
        for item in judged:
            errors += outcome.step(item, self._errors, [])
            yield item
        if self._options.is_kyverno:
            self._invalid_policies()

    def _print_text(self, judged: Iterable[JudgedResource], outcome: Outcome) -> None:
        items = iter(judged)
        first = next((item for item in items if self._options.is_verbose or not _all_pass(item)), None)
        lines: Iterator[str] = iter(())
        if first is not None:
            from pyverno.cli.apply.text import lines_of  # only a run with findings needs it

            style = style_for(self._log, remove_color=self._options.remove_color)
            lines = lines_of(self._options, chain([first], items), self._session, outcome, style)
        head = [*islice(lines, 1)]  # all resources are judged now
        # an object that was printed before ends without a line end
        if self._has_objects and not self._options.is_machine_output:
            self._log.write("\n")
        self._log.writelines(chain(head, lines))
        if not self._options.quiet:
            self._log.write(f"\n{outcome.summary}\n")

    def _invalid_policies(self) -> None:
        listed: dict[str, list[str]] = {"Policies Skipped:": [], "Invalid Policies:": []}
        for item in self._refused:
            if item.written is None:
                continue
            reason, name = "; ".join(error.message for error in item.errors), _name(item.written.name)
            title = "Invalid Policies:" if reason.startswith(_ELEMENT_VARIABLE) else "Policies Skipped:"
            listed[title].append(f"{name}: {reason}" if reason else name)
        for title, entries in listed.items():
            if entries:
                lines = [f"{number}. {entry}" for number, entry in enumerate(entries, 1)]
                self._log.write("\n".join((DIVIDER, title, *lines, DIVIDER)) + "\n")

    def _violations(self, item: JudgedResource) -> list[str]:
        if _all_pass(item):
            return []
        path = _name(_path(item.ref))
        grouped = groupby(item.results, _response)
        return [block for (policy, _), results in grouped for block in self._blocks(policy, path, [*results])]

    def _blocks(self, policy: str, path: str, results: Sequence[RuleResult]) -> Iterator[str]:
        for result in results:
            text = _PROBLEMS.get((result.rule.type, result.status))
            if text is not None:
                yield text.format(policy=_name(result.rule.policy.name), path=path, message=result.message)
        failed = [result for result in results if result.status is Status.FAIL]
        if not failed:
            return
        audited = self._options.audit_warn and all(result.action is FailureAction.AUDIT for result in failed)
        name = _name(failed[0].rule.policy.name)
        yield f"policy {name} -> resource {path} {'failed as audit warning' if audited else 'failed'}:\n"
        for number, result in enumerate(failed, 1):
            yield f"{number} - {_name(result.rule_name)} {result.message or 'validation failed'}\n"

    @staticmethod
    def _errors(item: JudgedResource) -> list[str]:
        erred = [result for result in item.results if result.status is Status.ERROR]
        return [
            _name(f"policy {result.rule.policy.key} rule {result.rule_name} -> resource {_path(item.ref)}")
            + _message(f": {result.message}")
            for result in erred
            if (result.rule.type, result.status) not in _PROBLEMS
        ]

    def _table(self, judged: Iterable[JudgedResource], outcome: Outcome) -> None:
        from pyverno.report.table import BOX, table_lines

        headers = ["POLICY", "RULE", "RESOURCE", "RESULT", "REASON"]
        if self._options.detailed_results:
            headers.append("MESSAGE")
        none: list[list[str]] = []
        rows = (row for item in judged for row in outcome.step(item, self._rows, none))
        style = style_for(self._stream, remove_color=self._options.remove_color)
        lines = table_lines(
            ["ID", *headers],
            ([str(number), *row] for number, row in enumerate(rows, 1)),
            paint_header=style.header,
            paint_cell=style.cells(1 + headers.index("RESULT")) if style.is_coloured else None,
            is_ascii=not can_show(self._stream, BOX),
            lost=lambda row, error: outcome.lose(f"the row of `{row[1]}/{row[2]}` for {row[3]}", NOWHERE, error),
        )
        self._stream.writelines(f"{line}\n" for line in lines)

    def _rows(self, item: JudgedResource) -> list[list[str]]:
        name, rows = str(item.ref), []
        for result in item.results:
            policy = result.rule.policy
            rule = result.rule.name if policy.kind in RULE_KINDS else ""
            status = reported_status(result, audit_warn=self._options.audit_warn).value.title()
            row = [_name(policy.key), _name(rule), _name(name), status, ""]
            rows.append([*row, result.message] if self._options.detailed_results else row)
        return rows

    def _yaml(self, value: JSON) -> None:
        self._line(f"{_yaml_text(value)}\n---")

    def _line(self, text: str) -> None:
        self._stream.write(text + "\n")


_PROBLEMS = {
    (RuleType.MUTATION, Status.SKIP): "\nskipped mutate policy {policy} -> resource {path}\n",
    (
        RuleType.MUTATION,
        Status.ERROR,
    ): "\nerror while applying mutate policy {policy} -> resource {path} \nerror:  {message}\n",
    (
        RuleType.GENERATION,
        Status.ERROR,
    ): "\nerror while applying generate policy {policy} -> resource {path} \nerror: {message}\n",
}


def _all_pass(item: JudgedResource) -> bool:
    return all([result.status is _PASS for result in item.results])  # noqa: C419 - a list is the faster one


def _response(result: RuleResult) -> tuple[str, RuleType]:
    return result.rule.policy.key, result.rule.type


def _path(ref: ResourceRef) -> str:
    return f"{ref.namespace}/{ref.kind}/{ref.name}"


def _files(path: Path) -> ObjectFiles:
    # imported here and below, because most runs write no objects
    from pyverno.cli.apply.files import ObjectFiles

    return ObjectFiles(path)


def _yaml_text(value: JSON) -> str:
    from pyverno.kube.yaml.writer import dump_yaml

    return dump_yaml(value, indent=4, indent_lists=True)


def _name(text: str) -> str:
    """Return a name as one line."""
    if text.isprintable():
        return text
    from pyverno.sinks.characters import one_line  # few names need it

    return one_line(text)


def _message(text: str) -> str:
    """Return a message whose lines after the first are indented."""
    if "\n" not in text:
        return text
    from pyverno.sinks.characters import block

    return block(text, "  ")
