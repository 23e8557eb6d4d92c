"""One run of `pyverno lint`: read, lint, fix, print, and the exit code."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from pyverno.cli.errors import report_error, report_note
from pyverno.cli.lint.output import print_diagnostics, print_explanation, print_list
from pyverno.cli.skipped import counted, report_skipped
from pyverno.cli.terminal import STDOUT
from pyverno.cli.watch import watch
from pyverno.compiler.compile import compile_documents
from pyverno.compiler.lints.fixes import fix_text
from pyverno.compiler.lints.lint import Diagnostic, Severity
from pyverno.compiler.lints.registry import INVALID, LINTS, UNREADABLE, find_lint
from pyverno.compiler.lints.run import is_selected, lint_documents
from pyverno.errors import NOWHERE, DocumentError, PyvernoError, UsageError, raise_all
from pyverno.kube.json import JSONObject
from pyverno.offline.files import STDIN, load_files
from pyverno.offline.folderrules import FolderRules, Skipped
from pyverno.offline.policies import load_policy_documents
from pyverno.offline.rewriting import encode_like, replace_file
from pyverno.policy.kinds import KNOWN_KINDS
from pyverno.report.problem import problem_of
from pyverno.spelling import did_you_mean
from pyverno.value import dataclass

# trust rows: judged-file

__all__ = ["LintOptions", "run_lint"]

_ROUNDS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class LintOptions:
    """All flags of the command; `output` is another spelling of `format`."""

    policies: tuple[str, ...] = ()
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    crds: tuple[str, ...] = ()
    fix: bool = False
    format: str = "text"
    output: str = ""
    quiet: bool = False
    explain: str = ""
    lists: bool = False
    config: str = ""
    config_revision: str = ""
    watch: bool = False


@dataclass(frozen=True, slots=True)
class _Outcome:
    """The findings of a run, what could not be read, the number of documents, and files that were skipped.

    `suppressed` is the number of findings that comments suppress, `unselected` that of errors of policies that
    `--select` and `--ignore` leave out.
    """

    found: tuple[Diagnostic, ...]
    errors: tuple[PyvernoError, ...]
    documents: int
    skipped: tuple[Skipped, ...]
    suppressed: int
    unselected: int


def run_lint(options: LintOptions) -> int:
    """Run the command; returns 0 without findings, 1 with findings, 2 where an input cannot be used."""
    try:
        if options.lists:
            print_list(STDOUT)
            return 0
        if options.explain:
            print_explanation(_lint_named(options.explain), STDOUT)
            return 0
        _check_options(options)
        if options.watch:
            watch(lambda: _run(options), lambda: (*options.policies, *options.crds))
        return _run(options)
    except UsageError as error:
        report_error(error)
        return 2


def _lint_named(word: str) -> str:
    lint = find_lint(word)
    if lint is None:
        raise UsageError(f"there is no check `{word}`{did_you_mean(word, _names())}")
    return lint.code


def _names() -> tuple[str, ...]:
    return tuple(name for lint in LINTS for name in (lint.code, lint.name))


def _run(options: LintOptions) -> int:
    outcome = _lint(options)
    fixed = 0
    if options.fix:
        for _ in range(_ROUNDS):
            made = _fix_files(outcome.found)
            fixed += made
            if not made:
                break
            outcome = _lint(options)
    report_skipped(outcome.skipped)
    for text in _left_out(options, outcome):
        report_note(text)  # guard: what lint leaves out is counted
    for error in outcome.errors:
        if not isinstance(error, DocumentError):  # those are findings
            report_error(error)
    style = options.output or options.format
    print_diagnostics(
        outcome.found,
        [error for error in outcome.errors if not isinstance(error, DocumentError)],
        STDOUT,
        style=style,
        quiet=options.quiet,
        documents=outcome.documents,
        fixed=fixed,
    )
    if outcome.errors:
        return 2
    return 1 if outcome.found else 0


def _left_out(options: LintOptions, outcome: _Outcome) -> Iterator[str]:
    """Yield what flags and comments take away from a run, with its number."""
    codes = _codes()
    unused = sum(not is_selected(code, options.select, options.ignore) for code in codes)
    if unused:
        yield f"--select and --ignore leave out {unused} of {len(codes)} checks"
    if outcome.unselected:
        yield f"--select and --ignore leave out {counted(outcome.unselected, 'error')} of policies that are not valid"
    if outcome.suppressed:
        yield f"comments suppress {counted(outcome.suppressed, 'finding')}"


def _codes() -> tuple[str, ...]:
    return UNREADABLE, INVALID, *(lint.code for lint in LINTS)


def _check_options(options: LintOptions) -> None:
    if not options.policies:
        raise UsageError("name the files or folders of the policies to lint, or `-` for stdin")
    if options.fix and STDIN in options.policies:
        raise UsageError("--fix changes files; it cannot be used with `-`")
    if options.watch and STDIN in options.policies:
        raise UsageError("--watch and standard input cannot be used together")
    known = _codes()
    for word in (*options.select, *options.ignore):
        if not any(code.startswith(word.upper()) for code in known):
            raise UsageError(f"no check has a code that begins with `{word}`{did_you_mean(word, known)}")
    if not any(is_selected(code, options.select, options.ignore) for code in known):
        raise UsageError("--select and --ignore leave no check to run")


def _lint(options: LintOptions) -> _Outcome:
    loaded = load_policy_documents(options.policies, folders=FolderRules())
    crds = _definitions(options.crds)
    if not loaded.documents and not loaded.errors:
        raise UsageError("there is no policy to lint in " + ", ".join(f"`{each}`" for each in options.policies))
    compilation = compile_documents(loaded.documents)
    unreadable = [each for each in loaded.errors if isinstance(each, DocumentError)]
    found = [_of_error(each, UNREADABLE, "unreadable-document") for each in unreadable]
    for item in compilation.items:
        found += [_of_error(each, INVALID, "invalid-policy") for each in item.errors]
    kinds = KNOWN_KINDS.with_crds(crds) if crds else KNOWN_KINDS
    selected = [each for each in found if is_selected(each.code, options.select, options.ignore)]
    suppressed: list[Diagnostic] = []
    linted = lint_documents(
        compilation.items,
        kinds=kinds,
        crds=crds,
        select=options.select,
        ignore=options.ignore,
        suppressed=suppressed,
    )
    ordered = sorted(
        (*selected, *linted), key=lambda each: (each.location.file, each.location.line, each.location.column)
    )
    return _Outcome(
        found=tuple(ordered),
        errors=tuple(loaded.errors),
        documents=len(loaded.documents),
        skipped=tuple(loaded.skipped),
        suppressed=len(suppressed),
        unselected=len(found) - len(selected),
    )


def _definitions(files: Sequence[str]) -> list[JSONObject]:
    if not files:
        return []
    loaded = load_files(files)
    raise_all([UsageError(str(error)) for error in loaded.errors])
    found = [
        document.value
        for document in loaded.documents
        if isinstance(document.value, dict) and document.value.get("kind") == "CustomResourceDefinition"
    ]
    if not found:
        raise UsageError("the files of --crd hold no CustomResourceDefinition")
    return found


def _of_error(error: PyvernoError, code: str, name: str) -> Diagnostic:
    return Diagnostic(code, name, Severity.ERROR, problem_of(error).message, error.location or NOWHERE)


def _fix_files(found: Iterable[Diagnostic]) -> int:
    """Write the fixes of findings into their files; returns how many were made."""
    by_file: dict[str, list[Diagnostic]] = {}
    for each in found:
        if each.edit is not None and each.document is not None:
            by_file.setdefault(each.document.file, []).append(each)
    return sum(_fix_file(Path(file), diagnostics) for file, diagnostics in by_file.items() if Path(file).is_file())


def _fix_file(path: Path, found: Sequence[Diagnostic]) -> int:
    try:
        content = path.read_bytes()
        # positions count from behind the byte order mark
        fixed, made = fix_text(content.decode("utf-8-sig"), found)
        if made:
            replace_file(path, encode_like(fixed, content))
    except UnicodeDecodeError:
        return 0  # the positions are those of another text; the finding stays
    except OSError as error:
        raise UsageError(f"cannot read `{path}`: {(error.strerror or str(error)).lower()}") from error
    return made
