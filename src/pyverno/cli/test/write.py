"""`pyverno test --write`: rows for results that no row checks, added to the test file for review.

Rows hold the engine's results; a reader must review whether they are right. Existing rows, comments and quotes stay as
they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from pyverno.cli.test.check import rule_fits
from pyverno.cli.test.subjects import subjects_of
from pyverno.cli.test.suite import ReviewedManifest, Suite
from pyverno.engine.result import RuleResult
from pyverno.errors import UsageError
from pyverno.kube.json import JSONObject
from pyverno.kube.yaml.documents import Document, load_documents
from pyverno.kube.yaml.edits import TextEdit, apply_edits
from pyverno.kube.yaml.writer import dump_yaml
from pyverno.offline.testfile import ExpectedResult, read_test_file
from pyverno.policy.kinds import RULE_KINDS
from pyverno.report.summary import reported_status
from pyverno.value import dataclass

__all__ = ["NewRow", "add_rows", "new_rows"]

_NOT_ADDED = "rows are added to a list in block style, one `-` for each row"


@dataclass(frozen=True, slots=True)
class NewRow:
    """A row to be added: results of one rule that are the same for some resources."""

    policy: str
    rule: str
    kind: str
    resources: tuple[str, ...]
    result: str
    operation: str = ""
    policy_kind: str = ""

    def to_json(self) -> JSONObject:
        """Return the row as it is written."""
        row: JSONObject = {"policy": self.policy}
        if self.rule:
            row["rule"] = self.rule
        elif self.policy_kind in _MARKS:
            row[_MARKS[self.policy_kind]] = True
        row |= {"kind": self.kind, "resources": list(self.resources)}
        if self.operation:
            row["operation"] = self.operation
        return {**row, "result": self.result}


_MARKS = {
    "ValidatingAdmissionPolicy": "isValidatingAdmissionPolicy",
    "MutatingAdmissionPolicy": "isMutatingAdmissionPolicy",
    "ValidatingPolicy": "isValidatingPolicy",
    "ImageValidatingPolicy": "isImageValidatingPolicy",
    "MutatingPolicy": "isMutatingPolicy",
    "GeneratingPolicy": "isGeneratingPolicy",
    "DeletingPolicy": "isDeletingPolicy",
}


def new_rows(suite: Suite, judged: Sequence[ReviewedManifest]) -> tuple[NewRow, ...]:
    """Return rows for all results of manifests that no row of the suite checks, in the order of the results."""
    subjects = [each for each in subjects_of(judged) if not each.is_target and not each.judged.payload]
    names = Counter(f"{each.ref.kind}/{each.ref.name}" for each in subjects if each.judged.operation is None)
    known = _Rows(suite.test.results)
    grouped: dict[tuple[str, ...], dict[str, None]] = {}
    for subject in subjects:
        operation = subject.judged.operation
        if operation is not None:
            continue  # a row needs this review, so its results have rows
        ref = subject.ref
        is_unique = names[f"{ref.kind}/{ref.name}"] == 1
        name = ref.name if is_unique else f"{ref.namespace}/{ref.name}"
        for result in subject.judged.review.results:
            if result.target is not None or known.check(result, ref.name, ref.namespace):
                continue
            info = result.rule.policy
            rule = (result.rule.origin or result.rule.name) if info.kind in RULE_KINDS else ""
            key = (info.key, rule, ref.kind, reported_status(result).value, info.kind)
            grouped.setdefault(key, {})[name] = None
    return tuple(
        NewRow(policy, rule, kind, tuple(resources), status, policy_kind=policy_kind)
        for (policy, rule, kind, status, policy_kind), resources in grouped.items()
    )


class _Rows:
    """The rows of a suite, by their policies and by what they name."""

    def __init__(self, rows: Sequence[ExpectedResult]) -> None:
        self._rows: dict[tuple[str, ...], list[ExpectedResult]] = {}
        for row in rows:
            if row.operation:
                continue
            named = [(name,) for name in row.resources]
            named_apart = [(spec.namespace, spec.name) for spec in row.resource_specs]
            for key in (*named, *named_apart) or ((),):
                self._rows.setdefault((row.policy_name, *key), []).append(row)

    def check(self, result: RuleResult, name: str, namespace: str) -> bool:
        """Return whether some row is for a result on an object."""
        keys = ((), (name,), (f"{namespace}/{name}",), (namespace, name), ("", name))
        policy = result.rule.policy.name
        return any(rule_fits(row, result.rule) for key in keys for row in self._rows.get((policy, *key), ()))


def add_rows(document: Document, rows: Sequence[NewRow]) -> str:
    """Return the text of a test file with rows added to one of its documents.

    Raises UsageError for a list of results in flow style.
    """
    text = document.text
    value = document.value
    if text is None or not isinstance(value, dict):
        raise UsageError("rows can be added to a file only", location=document.location())
    edited, _ = apply_edits(text, [_edit(document, text, rows)])
    _check(document, edited, rows)
    return edited


def _edit(document: Document, text: str, rows: Sequence[NewRow]) -> TextEdit:
    value = document.value
    key = next((each for each in value if each.lower() == "results"), "") if isinstance(value, dict) else ""
    results = value[key] if key else None
    if isinstance(results, list) and results:
        start = document.text_index((key, len(results) - 1))
        line_start = text.rfind("\n", 0, start) + 1
        head = text[line_start:start]
        if head.strip() != "-":
            raise UsageError(_NOT_ADDED, location=document.location((key,)))
        indent = head[: len(head) - len(head.lstrip(" "))]
        at = _end_of_item(text, start, len(indent))
        return TextEdit(at, "", _render_rows(rows, indent))
    if not key:
        at = _end_of_item(text, document.text_index(()), -1)
        return TextEdit(at, "", f"results:\n{_render_rows(rows, '  ')}")
    start = document.text_index((key,), key=True)
    end = text.find("\n", start)
    old = text[start:end]
    if old.split("#")[0].replace(" ", "").strip("'\"") not in ("results:", "results:[]", "results:null", "results:~"):
        raise UsageError(_NOT_ADDED, location=document.location((key,)))
    comment = f"  #{old.partition('#')[2]}" if "#" in old else ""
    return TextEdit(start, old, f"results:{comment}\n{_render_rows(rows, '  ').rstrip(chr(10))}")


def _end_of_item(text: str, start: int, indent: int) -> int:
    """Return the index after the last line of the block that begins at `start` and is deeper than `indent`."""
    at = end = text.find("\n", start) + 1
    while 0 < at < len(text):
        following = text.find("\n", at) + 1 or len(text)
        line = text[at:following]
        content = line.strip()
        depth = len(line) - len(line.lstrip(" "))
        if content and (line.startswith(("---", "...")) or depth <= indent):
            break
        if content:
            end = following
        at = following
    return end


def _render_rows(rows: Sequence[NewRow], indent: str) -> str:
    return "".join(f"{indent}{line}\n" for line in _lines(rows))


def _lines(rows: Sequence[NewRow]) -> Iterator[str]:
    for row in rows:
        first = True
        for line in dump_yaml(row.to_json(), sort_keys=False, indent_lists=True).splitlines():
            yield f"{'- ' if first else '  '}{line}"
            first = False


def _check(document: Document, edited: str, rows: Sequence[NewRow]) -> None:
    """Check that the edited text has the intended content, so that an edit never damages a file."""
    documents = load_documents(edited, file=document.file)
    if document.index < len(documents):
        before, after = document.value, documents[document.index].value
        key = next((each for each in after if each.lower() == "results"), "") if isinstance(after, dict) else ""
        if isinstance(after, dict) and isinstance(before, dict) and key:
            expected = {**before, key: [*(before.get(key) or []), *(row.to_json() for row in rows)]}
            if after == expected:
                read_test_file(documents[document.index])
                return
    raise UsageError(_NOT_ADDED, location=document.location())
