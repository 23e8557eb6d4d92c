"""One run of `pyverno apply`: read, review, print, and the exit code."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING

from pyverno.cli.apply.judge import JudgedResource, judge
from pyverno.cli.apply.load import Inputs, check_not_empty, load_inputs, open_session
from pyverno.cli.apply.options import ApplyOptions, check_options
from pyverno.cli.apply.outcome import Outcome
from pyverno.cli.errors import report_error, report_note, report_warning, write_as_utf8
from pyverno.cli.terminal import STDERR, STDOUT
from pyverno.errors import PyvernoError
from pyverno.kube.yaml.documents import Document
from pyverno.offline.files import DocumentCache
from pyverno.offline.folderrules import HELM_TEMPLATES, Skipped
from pyverno.offline.policies import POLICY_GROUPS
from pyverno.offline.session import Session
from pyverno.report.summary import Summary
from pyverno.value import replace

if TYPE_CHECKING:
    from pyverno.cli.apply.adoption import Adoption
    from pyverno.cli.apply.output import Output
    from pyverno.compiler.lints.lint import Diagnostic

__all__ = ["exit_code", "run_apply"]

_NO_OBJECTS = "no policy changes or creates objects, so that"
_QUOTE = (
    "give resources with -r. A pattern needs quotes (-r '*.yaml'): the shell writes one word for each file, and -r "
    "takes the first of them only"
)


def run_apply(options: ApplyOptions, cache: DocumentCache | None = None) -> int:
    """Run the command and return its exit code; raises UsageError for unusable flags and files."""
    for text in check_options(options):
        report_warning(text)
    if options.is_machine_output:
        write_as_utf8()
    inputs = load_inputs(options, cache=cache)
    if options.cluster:
        from pyverno.cli.apply.cluster import cluster_session

        with cluster_session(options, inputs) as (live, session):
            return _run(options, live, session)
    if inputs.registry is None:
        return _run(options, inputs, open_session(inputs))
    from pyverno.cli.registries import opened_registries

    with opened_registries(inputs.registry) as registries:
        return _run(options, inputs, open_session(inputs, registries))


def _run(options: ApplyOptions, inputs: Inputs, session: Session) -> int:
    from pyverno.cli.apply.output import Output

    for text in (
        *inputs.warnings,
        *_scope_warnings(session),
        *_policy_warnings(session),
        *_name_warnings(options, inputs, session),
    ):
        report_warning(text)
    lints = _lint(options, inputs, session)
    for diagnostic in lints:
        report_warning(str(diagnostic))
    output = Output(options, session, STDOUT)
    if not options.is_kyverno:
        if options.output and session.policies and not output.has_objects:
            report_warning(f"{_NO_OBJECTS} `{options.output}` stays empty: results are on stdout")
        _report_skipped(options, inputs.skipped)
        if not options.allow_empty and not session.errors:
            check_not_empty(inputs, output.rules)
    problems: list[PyvernoError] = [*inputs.errors, *session.errors]
    for error in problems:
        report_error(error)
    if options.resources and not options.is_kyverno and any(map(_is_manifest, inputs.policies)):
        report_note(_QUOTE)
    adoption = _open_adoption(options, inputs, session)
    if options.changed_since:
        inputs = _changed_inputs(options, inputs)
    output.header(len(inputs.manifests))
    outcome = Outcome(
        Summary(erred=output.refused if options.is_kyverno else len(problems)), problems, options.audit_warn
    )
    judged = judge(inputs, session, workers=options.workers, continue_on_fail=options.continue_on_fail)
    if adoption is not None:
        judged = _accepted(judged, adoption, outcome)
    if STDERR.isatty():
        from pyverno.cli.progress import tracked  # it shows nothing elsewhere

        judged = tracked(judged, len(inputs.manifests), "resources")
    output.results(_counted(judged, output, outcome), outcome, lints)
    outcome.finish()
    if outcome.resources and not outcome.results and not problems and not options.is_kyverno:
        which = "the resource" if outcome.resources == 1 else f"any of the {outcome.resources} resources"
        report_note(f"no rule applies to {which}, so that nothing was checked")
    if adoption is not None:
        adoption.finish(has_problems=bool(problems), is_partial=bool(options.changed_since))
    code, reason = exit_code(options, outcome.summary, has_problems=bool(problems))
    if reason:
        (STDERR if options.is_machine_output else STDOUT).write(reason)
    return code


def _accepted(judged: Iterable[JudgedResource], adoption: Adoption, outcome: Outcome) -> Iterator[JudgedResource]:
    """Yield the resources with the results that count."""
    for item in judged:
        yield outcome.step(item, adoption.accept, item)


def _counted(judged: Iterable[JudgedResource], output: Output, outcome: Outcome) -> Iterator[JudgedResource]:
    """Yield the resources after they were counted and what they changed was printed."""
    for item in judged:
        outcome.step(item, outcome.count, None)
        outcome.step(item, output.changes, None)
        yield item


def _is_manifest(document: Document) -> bool:
    """Return whether a document that was given as a policy is an object of another API."""
    api_version = document.value.get("apiVersion") if isinstance(document.value, dict) else None
    return isinstance(api_version, str) and api_version.rpartition("/")[0] not in POLICY_GROUPS


def _lint(options: ApplyOptions, inputs: Inputs, session: Session) -> Sequence[Diagnostic]:
    """Return the findings of `pyverno lint` in the policies."""
    if options.no_lint or options.is_kyverno:
        return ()
    from pyverno.compiler.lints.run import lint_documents  # `--no-lint` does without

    return lint_documents(session.compilation.items, kinds=inputs.kinds, crds=inputs.crds)


_MARKERS = ("pyverno:", "pyverno.io/ignore")
"""Every manifest with suppressions contains one of these texts."""


def _open_adoption(options: ApplyOptions, inputs: Inputs, session: Session) -> Adoption | None:
    """Return the record of accepted failures, None for a run that accepts none."""
    if options.is_kyverno:
        return None
    may_suppress = not options.no_suppressions and (
        options.cluster or any(each.mentions(word) for each in inputs.resources for word in _MARKERS)
    )
    if not (options.baseline or options.fail_on or options.validate_schemas or may_suppress):
        return None
    from pyverno.cli.apply.adoption import Adoption  # few runs accept failures

    return Adoption(options, session, inputs.crds)


def _changed_inputs(options: ApplyOptions, inputs: Inputs) -> Inputs:
    """Return the inputs with the resources that changed; all of them where policies or files of their context did."""
    from pyverno.offline.adoption.changes import changes_since

    with changes_since(options.changed_since) as changes:
        cli_files = (options.values_file, options.user_info, options.context_file, *options.crd_paths)
        # compare whole files: a deleted exception is in none of today's documents
        rules = {each.file for each in (*inputs.policies, *inputs.exceptions)}
        if any(changes.names(each) for each in (*rules, *cli_files) if each):
            report_note(f"policies changed since `{options.changed_since}`: all resources are judged")
            return inputs
        kept = [
            (document, manifest)
            for document, manifest in zip(inputs.resources, inputs.manifests, strict=True)
            if changes.is_changed(document)
        ]
    report_note(f"{len(kept)} of {len(inputs.resources)} resources changed since `{options.changed_since}`")
    return replace(inputs, resources=[document for document, _ in kept], manifests=[manifest for _, manifest in kept])


def _report_skipped(options: ApplyOptions, skipped: Sequence[Skipped]) -> None:
    """Write a note on files that are no manifests, and on the flags for charts."""
    if not skipped:
        return
    from pyverno.cli.skipped import SHOWN, report_skipped  # most runs skip nothing

    report_skipped(skipped)
    charts = [str(PurePath(each.path).parent) for each in skipped if each.reason == HELM_TEMPLATES]
    if charts and not options.helm:
        more = ", ..." if len(charts) > SHOWN else ""
        report_note(f"templates of charts are judged when they are rendered: --helm {','.join(charts[:SHOWN])}{more}")


def _scope_warnings(session: Session) -> Iterator[str]:
    for item in session.compilation.items:
        written = item.written
        if written is not None and item.policy is not None and item.policy.info.namespace and not written.namespace:
            yield f"{item.policy.info.kind} `{written.name}` has no namespace, it counts as one of `default`"


def _name_warnings(options: ApplyOptions, inputs: Inputs, session: Session) -> Iterator[str]:
    """Yield the names in values and exceptions that nothing of the run has."""
    is_given = options.values_file or options.variables or inputs.exceptions
    if not is_given or options.is_kyverno or not session.policies:
        return
    from pyverno.cli.unusednames import unused_exceptions, unused_values  # few runs have values

    for name in (each.partition("=")[0] for each in options.variables):
        if name.startswith("request.object."):
            yield f"--set {name} has no effect: a values file can change the object"
    objects = [*inputs.manifests, *inputs.targets]
    others = [*inputs.exceptions, *inputs.global_entries]
    yield from unused_values(inputs.values, options.values_file or "--set", session, objects, others)
    yield from unused_exceptions(inputs.exceptions, session)


def _policy_warnings(session: Session) -> Iterator[str]:
    for item in session.compilation.items:
        if item.written is not None:
            yield from (f"policy {item.written.name}: {text}" for text in item.warnings)


def exit_code(options: ApplyOptions, summary: Summary, *, has_problems: bool) -> tuple[int, str]:
    """Return the exit code and the line that explains it.

    >>> exit_code(ApplyOptions(warn_exit_code=3), Summary(warned=1), has_problems=False)
    (3, 'exit as warnExitCode is 3')
    """
    if summary.failed or summary.erred or has_problems:
        return 1, ""
    if summary.warned and options.warn_exit_code:
        return options.warn_exit_code, f"exit as warnExitCode is {options.warn_exit_code}"
    if options.warn_no_pass and not summary.passed:
        return options.warn_exit_code, "exit as no objects satisfied policy\n"
    return 0, ""
