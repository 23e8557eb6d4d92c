"""One document converted and tested: its new text, its certificate, and the lines of the report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from pyverno.cli.equivalent.admission import admission_of
from pyverno.cli.migrate.certificate import Settings, Verification, certified, record_of, verify
from pyverno.cli.migrate.comments import Comments, read_comments, with_rule_comments
from pyverno.cli.migrate.report import RuleLine
from pyverno.compiler import compile_documents
from pyverno.compiler.equivalence.compare import Comparison, Counterexample
from pyverno.compiler.migration.inference import infer_definitions
from pyverno.compiler.migration.native import native_conversion
from pyverno.compiler.migration.outcome import Refused
from pyverno.compiler.migration.policy import PolicyConversion, RuleOutcome, convert_policy
from pyverno.compiler.migration.printer import print_policy
from pyverno.compiler.migration.related.convert import RelatedConversion, convert_related
from pyverno.compiler.migration.schema import SchemaBook
from pyverno.compiler.migration.validating import DELETION_ERRORS
from pyverno.errors import PyvernoError
from pyverno.kube.json import JSONObject
from pyverno.kube.yaml.documents import Document, load_documents
from pyverno.kube.yaml.writer import dump_yaml
from pyverno.offline.files import read_file
from pyverno.policy.clusterpolicy import ClusterPolicy
from pyverno.sinks.filenames import file_name
from pyverno.value import dataclass, field, replace

__all__ = ["Conversion", "convert_document"]

_UNTESTED: Final = "converted, not tested"
_NO_REGISTRY: Final = "no registry was read for signatures: try it with `pyverno apply --registry`"


@dataclass(frozen=True, slots=True)
class Conversion:
    """The conversion of one document.

    `documents` are the new policies, `remaining` is the old policy with the unconverted rules. `text` is all of them as
    YAML, empty if nothing was converted; `certificate` is the record of the test. `stem` begins the names of its files;
    it is the policy's name unless another policy has that too.
    """

    document: Document
    lines: tuple[RuleLine, ...]
    documents: tuple[JSONObject, ...] = ()
    remaining: JSONObject | None = None
    text: str = ""
    certificate: JSONObject | None = field(default=None)
    own_stem: str = ""
    bug: str = ""
    """The error that ended the conversion."""

    @property
    def source(self) -> JSONObject:
        """The old document."""
        found: JSONObject = self.document.value
        return found

    @property
    def name(self) -> str:
        """The name of the old policy."""
        return str((self.source.get("metadata") or {}).get("name") or f"document-{self.document.index}")

    @property
    def stem(self) -> str:
        """The beginning of the names of its files."""
        return self.own_stem or file_name(self.name)


def convert_document(
    document: Document,
    book: SchemaBook,
    settings: Settings,
    *,
    selected: Callable[[str], bool],
    is_unsafe: bool = False,
    is_tested: bool = True,
    text: str | None = None,
    others: Sequence[Document] = (),
    target: str = "cel",
) -> Conversion:
    """Convert and test one document; raises PyvernoError for an invalid policy.

    `text` is the source, unless it is a file. `others` are all documents that are converted: an exception is judged
    together with the policies that it names. `target` is `cel`, or `vap` and `map` for Kubernetes' own kinds.
    """
    compilation = compile_documents([document])
    item = compilation.items[0]
    if compilation.errors:
        raise compilation.errors[0]
    inferred = infer_definitions([document.value], book.schemas.kinds, settings.seeds)
    if inferred:
        book = book.with_inferred(inferred)
        admit = admission_of(settings.kube_version, book.definitions)
        settings = replace(settings, admit=admit, definitions=book.definitions)
    if isinstance(item.written, ClusterPolicy):
        related = RelatedConversion(_converted(item.written, book, selected, is_unsafe))
    else:
        related = _only_valid(convert_related(document, item.written, book, others))
    found = related.conversion
    if target != "cel" and found.documents:
        found = native_conversion(found, target)
        related = replace(related, conversion=found)
    if not found.documents:
        return Conversion(document, _lines(document, found, "not convertible", ""), remaining=found.remaining)
    documents, record, state, reason = found.documents, None, _UNTESTED, ""
    verification: Verification | None = None
    judged = _judgeable(document.value) if is_tested else None
    if judged is not None:
        verification = _verified(judged, related, settings)
        comparison = verification.comparison
        state, reason = _verdict(comparison)
        if comparison.counterexample is not None and not is_unsafe:
            refused = Refused("differs", "", reason, "convert the rule by hand; --unsafe shows the difference")
            lines = tuple(
                RuleLine(document.file, found.source["metadata"]["name"], each.rule, "not convertible", refused=refused)
                for each in found.rules
            )
            return Conversion(document, lines, remaining=found.source)
        documents = tuple(
            each if _asks_registry(each) else certified(each, verification, settings) for each in documents
        )
    written = _text(documents, found, _comments(document, text))
    if verification is not None:
        # the record names the policies as they are read from the text
        new = [each.value for each in load_documents(written)]
        record = record_of(((document.file, [document.value]), ("converted", new)), verification, settings)
    return Conversion(document, _lines(document, found, state, reason), documents, found.remaining, written, record)


def _converted(
    policy: ClusterPolicy, book: SchemaBook, selected: Callable[[str], bool], is_unsafe: bool
) -> PolicyConversion:
    """Convert a policy; rules whose CEL turns out not to be valid stay, so that they cost no other rule anything."""
    invalid: dict[str, Refused] = {}

    def convert(is_wanted: Callable[[str], bool]) -> PolicyConversion:
        return convert_policy(policy, book, assumes_types=is_unsafe, selected=is_wanted)

    def is_left(rule: str) -> bool:
        return rule not in invalid and selected(rule)

    while True:
        found = convert(is_left)
        errors = _errors(found.documents)
        suspects = {each.rule: errors[name] for each in found.rules for name in each.policies if name in errors}
        if not suspects:
            rules = (replace(each, refused=invalid.get(each.rule, each.refused)) for each in found.rules)
            return replace(found, rules=tuple(rules))
        # rules that share a policy are looked at one by one
        alone = {rule: next(iter(_errors(convert(rule.__eq__).documents).values()), None) for rule in suspects}
        invalid |= {rule: refused for rule, refused in alone.items() if refused is not None} or suspects


def _only_valid(related: RelatedConversion) -> RelatedConversion:
    """Refuse the conversion of a cleanup policy or an exception whose CEL is not valid."""
    found = related.conversion
    errors = _errors(found.documents)
    if not errors:
        return related
    rules = tuple(RuleOutcome(each.rule, (), next(iter(errors.values())), each.notes) for each in found.rules)
    return RelatedConversion(PolicyConversion(found.source, (), found.source, rules))


def _errors(documents: Sequence[JSONObject]) -> dict[str, Refused]:
    """Return a refusal for each policy that does not compile, by its name: a gap of the conversion, not of the user."""
    found: dict[str, Refused] = {}
    for body in documents:
        errors = compile_documents([Document(body, "-", 0)]).errors
        if errors:
            reason = f"its form in CEL is not valid: {errors[0].message.splitlines()[0]}"
            found[body["metadata"]["name"]] = Refused(
                "invalid-cel", "", reason, "convert the rule by hand, and report this"
            )
    return found


def _verified(policy: JSONObject, related: RelatedConversion, settings: Settings) -> Verification:
    found = related.conversion
    left = _judgeable(found.remaining) if found.remaining is not None else None
    made = [each for each in found.documents if not _asks_registry(each)]
    new = [*related.new, *made, *([left] if left is not None else [])]
    codes = {note.code for rule in found.rules for note in rule.notes}
    return verify([*related.old, policy], new, settings, judges_deleted=DELETION_ERRORS not in codes)


def _asks_registry(document: JSONObject) -> bool:
    return str(document.get("kind")).endswith("ImageValidatingPolicy")


def _judgeable(document: JSONObject) -> JSONObject | None:
    """Return a policy without the rules that verify images, which only a registry decides; None if it has no others."""
    spec = document.get("spec") or {}
    rules = spec.get("rules")
    if not isinstance(rules, list):
        return document
    kept = [each for each in rules if "verifyImages" not in each]
    return {**document, "spec": {**spec, "rules": kept}} if kept else None


def _verdict(comparison: Comparison) -> tuple[str, str]:
    if comparison.counterexample is not None:
        return "converted, differs", _difference(comparison.counterexample)
    if comparison.blind:
        return _UNTESTED, "; ".join(comparison.blind)
    return "converted (tested)", ""


def _difference(found: Counterexample) -> str:
    """Return the smallest difference in words, and its direction."""
    resource = " ".join(dump_yaml(found.resource).split())
    way = ""
    if found.difference == "decision":
        way = "; stricter than before" if found.second.blocks else "; weaker than before"
    verdicts = f"old {found.first.word}, new {found.second.word}"
    return f"{found.difference} differs on {found.operation.value} ({verdicts}{way}) of: {resource[:400]}"


def _lines(document: Document, found: PolicyConversion, state: str, reason: str) -> tuple[RuleLine, ...]:
    policy = found.source["metadata"]["name"]
    images = {each["metadata"]["name"] for each in found.documents if _asks_registry(each)}

    def line(rule: RuleOutcome) -> RuleLine:
        own, why = (_UNTESTED, _NO_REGISTRY) if images & {*rule.policies} else (state, reason)
        if rule.refused is not None:
            own, why = "not convertible", ""
        return RuleLine(document.file, policy, rule.rule, own, rule.policies, why, rule.refused, rule.notes)

    return tuple(map(line, found.rules))


def _comments(document: Document, text: str | None) -> Comments:
    """Return the comments of the document in its file; none if the file cannot be read again."""
    if text is None:
        try:
            text = read_file(Path(document.file)).decode(errors="replace")
        except PyvernoError:
            return Comments()
    found = read_comments(text)
    return found[document.index] if document.index < len(found) else Comments()


def _text(documents: Sequence[JSONObject], found: PolicyConversion, comments: Comments) -> str:
    parts = []
    for number, each in enumerate(documents):
        name = each["metadata"]["name"]
        counts = [(rule.rule, rule.counts.get(name, 0)) for rule in found.rules]
        printed = with_rule_comments(print_policy(each), [pair for pair in counts if pair[1]], comments)
        parts.append("".join(f"{line}\n" for line in (comments.head if number == 0 else ())) + printed)
    if found.remaining is not None:
        parts.append(print_policy(found.remaining))
    return "---\n".join(parts)
