"""Runs lints over the documents of a run: findings with their places, without those that comments suppress.

A comment `# pyverno: ignore[PV101]` suppresses findings of its line and of the line below it; codes may be prefixes,
and without brackets all findings are meant. At the line of a field it holds for the whole text of the field.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from pyverno.compiler.lints.lint import Diagnostic, Lint, Problem, Subject, Workspace
from pyverno.compiler.lints.registry import LINTS
from pyverno.engine.faults import fault_of
from pyverno.kube.json import JSONObject
from pyverno.kube.kinds import KindTable
from pyverno.kube.yaml.documents import Document
from pyverno.lazyregex import regex
from pyverno.policy.kinds import KNOWN_KINDS

if TYPE_CHECKING:
    from pyverno.compiler.compile import Compiled
    from pyverno.compiler.lints.fields import FieldTable

# trust rows: ignore-file

__all__ = ["is_selected", "lint_documents"]

_MOST_CHARACTERS = 100
"""Findings of a lint in a document whose character is looked up; those after them have the place of their text."""

_IGNORE = regex(r"#\s*pyverno:\s*ignore(?:\[([A-Za-z0-9,\s-]*)\])?")


def lint_documents(
    items: Iterable[Compiled],
    *,
    kinds: KindTable = KNOWN_KINDS,
    crds: Sequence[JSONObject] = (),
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    suppressed: list[Diagnostic] | None = None,
) -> list[Diagnostic]:
    """Return the findings of all documents that decode, in their order.

    `select` and `ignore` are codes or their beginnings. `kinds` are those that are known, `crds` the definitions of
    custom kinds with their schemas. `suppressed` receives the findings that comments suppress.
    """
    subjects = tuple(Subject(item.document, item.written) for item in items if item.written is not None)
    workspace = Workspace(subjects, kinds, _fields(tuple(crds)))
    is_single = len(subjects) == 1 and _rule_count(subjects[0]) < 2
    lints = [lint for lint in LINTS if is_selected(lint.code, select, ignore) and not (lint.compares and is_single)]
    found: list[Diagnostic] = []
    hidden = [] if suppressed is None else suppressed
    for subject in subjects:
        of_subject = [each for lint in lints for each in _findings(lint, subject, workspace, hidden)]
        found += sorted(of_subject, key=lambda each: (each.location.line, each.location.column, each.code))
    return found


def _rule_count(subject: Subject) -> int:
    spec = subject.document.value["spec"]
    return max(len(spec.get(name) or ()) for name in ("rules", "validations"))


def is_selected(code: str, select: Sequence[str], ignore: Sequence[str]) -> bool:
    """Return whether a code is looked at: the longest beginning that names it decides.

    >>> is_selected("PV101", (), ("PV1",)), is_selected("PV101", ("PV101",), ("PV1",))
    (False, True)
    """
    chosen = max((len(each) for each in select if code.startswith(each.upper())), default=-1 if select else 0)
    refused = max((len(each) for each in ignore if code.startswith(each.upper())), default=-1)
    return chosen > refused


def _fields(crds: tuple[JSONObject, ...]) -> _LazyFields:
    return _LazyFields(crds)


class _LazyFields:
    """The table of fields, read when a lint first needs it."""

    __slots__ = ("_crds", "_table")

    def __init__(self, crds: tuple[JSONObject, ...]) -> None:
        self._crds = crds
        self._table: FieldTable | None = None

    def __call__(self) -> FieldTable:
        if self._table is None:
            from pyverno.compiler.lints.fields import builtin_fields

            self._table = builtin_fields().with_crds(self._crds) if self._crds else builtin_fields()
        return self._table


def _findings(lint: Lint, subject: Subject, workspace: Workspace, suppressed: list[Diagnostic]) -> Iterable[Diagnostic]:
    """Return the findings of one check in one document; a bug of the check is a finding, and ends nothing else."""
    document = subject.document
    if document.text is not None and lint.words and not any(map(document.mentions, lint.words)):
        return ()
    try:
        return tuple(_checked(lint, subject, workspace, suppressed))
    except RecursionError:  # nested deeper than any object can be; compiling reports it
        return ()
    except Exception as error:
        fault = fault_of(error)
        message = f"this check could not be made: internal error ({fault.code}): {fault.error}"
        return (_diagnostic(lint, Problem((), message), subject, is_exact=False),)


def _checked(lint: Lint, subject: Subject, workspace: Workspace, suppressed: list[Diagnostic]) -> Iterator[Diagnostic]:
    for number, problem in enumerate(lint.check(subject, workspace)):
        diagnostic = _diagnostic(lint, problem, subject, is_exact=number < _MOST_CHARACTERS)
        if _is_suppressed(diagnostic, subject.document):
            suppressed.append(diagnostic)  # guard: findings that comments suppress are counted
        else:
            yield diagnostic


def _diagnostic(lint: Lint, problem: Problem, subject: Subject, *, is_exact: bool) -> Diagnostic:
    document = subject.document
    if problem.offset is None or not is_exact:
        location = document.location(problem.path, key=problem.key)
    else:
        location = document.character(problem.path, problem.offset)
    return Diagnostic(
        lint.code,
        lint.name,
        lint.severity,
        problem.message,
        location,
        problem.path,
        subject.name,
        document,
        problem.edit,
    )


def _is_suppressed(diagnostic: Diagnostic, document: Document) -> bool:
    if not document.mentions("pyverno:"):
        return False
    numbers = {diagnostic.location.line, document.location(diagnostic.path, key=True).line}
    for number in numbers:
        if _ignores(document.line_text(number) or "", diagnostic.code):
            return True
        above = document.line_text(number - 1) or ""
        if above.lstrip().startswith("#") and _ignores(above, diagnostic.code):
            return True
    return False


def _ignores(line: str, code: str) -> bool:
    found = _IGNORE.search(line)
    if found is None:
        return False
    if found[1] is None:
        return True
    return any(code.startswith(word.strip().upper()) for word in found[1].split(",") if word.strip())
