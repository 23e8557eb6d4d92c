"""Generate rules as GeneratingPolicies: `data`, `clone`, `cloneList` and `foreach` as calls of `generator.Apply`.

Both dialects create the same objects; the labels by which controllers know them differ. Objects that the old rule made
are therefore not adopted: the new policy leaves an object alone that it did not create. A missing source is an error on
both sides.
"""

from __future__ import annotations

from typing import Final

from pyverno.compiler.migration.conditions import conditions
from pyverno.compiler.migration.expressions import Names, translate_query
from pyverno.compiler.migration.expressions.value import INTEGER, Value, of_reference
from pyverno.compiler.migration.mutations.reading import RuleExpressions
from pyverno.compiler.migration.mutations.values import has_variable, write_text, write_value
from pyverno.compiler.migration.outcome import Note, UnconvertibleError, join_path
from pyverno.compiler.migration.reads import read_call
from pyverno.compiler.migration.schema import ANY
from pyverno.compiler.migration.text import (
    TRUE,
    Cel,
    CelType,
    Level,
    Reference,
    compare,
    literal,
    ternary,
)
from pyverno.compiler.migration.variables import inlined
from pyverno.kube.gvk import GVK, parse_api_version
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.kinds import KindInfo, KindTable
from pyverno.policy.kinds import KNOWN_KINDS
from pyverno.value import dataclass

__all__ = ["Generations", "convert_generate"]

_NOT_ADOPTED: Final = Note(
    "not-adopted",
    "generate",
    "objects that the old rule created are left alone: delete them, or keep the old rule for them, when you switch",
)
_VARIABLES: Final = "ijk"


@dataclass(frozen=True, slots=True)
class Generations:
    """The entries of `spec.generate`, fields of `spec` that come with them, and notes."""

    entries: tuple[JSONObject, ...]
    evaluation: JSONObject
    notes: tuple[Note, ...] = ()


def convert_generate(
    generate: JSONObject, names: Names, path: str = "generate", table: KindTable = KNOWN_KINDS
) -> Generations:
    """Convert a `generate` block; raises UnconvertibleError."""
    writer = _Writer(table)
    if generate.get("foreach"):
        entries = [
            writer.for_elements(each, names, f"{path}.foreach[{number}]")
            for number, each in enumerate(generate["foreach"])
        ]
    else:
        entries = [writer.applied(generate, names, path)]
    evaluation: JSONObject = {}
    for old, new in (
        ("generateExisting", "generateExisting"),
        ("synchronize", "synchronize"),
        ("orphanDownstreamOnPolicyDelete", "orphanDownstreamOnPolicyDelete"),
    ):
        if generate.get(old):
            evaluation[new] = {"enabled": True}
    notes = [_NOT_ADOPTED, *writer.notes]
    return Generations(tuple({"expression": each.text} for each in entries), evaluation, tuple(notes))


class _Writer:
    def __init__(self, table: KindTable) -> None:
        self.table = table
        self.notes: list[Note] = []

    def for_elements(self, entry: JSONObject, names: Names, path: str) -> Cel:
        """Return the calls for the elements of a list."""
        below = join_path(path, "list")
        listed = translate_query(str(entry.get("list") or ""), names, below, loud=True)
        if listed.cel.type not in (CelType.LIST, CelType.DYN) or listed.is_null:
            reason = "what is no list counts as one element"
            raise UnconvertibleError("foreach-list", below, reason, "write the rule without foreach")
        elements = listed.cel if listed.sequence is None else listed.sequence.written(total=False)
        variable = _VARIABLES[0]
        schema = ANY if listed.reference is None else listed.reference.schema.element
        element = Reference(f"{elements.within(Level.PRIMARY)}[{variable}]", schema)
        inner = names.with_element(of_reference(element), Value(Cel(variable, CelType.INT), INTEGER), 0, variable)
        inner = inlined(entry.get("context") or (), inner, join_path(path, "context"))
        numbers = Cel(f"lists.range({elements.within(Level.PRIMARY)}.size())", CelType.LIST)
        if entry.get("preconditions") is not None:
            test = conditions(entry["preconditions"], inner, join_path(path, "preconditions"))
            if test.text != TRUE.text:
                numbers = numbers.macro("filter", variable, test, CelType.LIST)
        return numbers.macro("all", variable, self.applied(entry, inner, path))

    def applied(self, generate: JSONObject, names: Names, path: str) -> Cel:
        """Return the call for one target."""
        writers = {"data": self._data, "clone": self._clone, "cloneList": self._clone_list}
        sources = [write for field, write in writers.items() if generate.get(field)]
        if len(sources) != 1:
            raise UnconvertibleError("generate-source", path, "the rule has no source, or several", "mend the rule")
        return sources[0](generate, RuleExpressions(names, conditions), path)

    def _data(self, generate: JSONObject, expressions: RuleExpressions, path: str) -> Cel:
        data, below = generate["data"], join_path(path, "data")
        if not isinstance(data, dict):
            raise UnconvertibleError("generate-data", below, "the data is no map", "mend the rule")
        if "status" in data:
            raise UnconvertibleError("generate-status", below, "a status is never generated", "remove it")
        self._info(generate, path)
        metadata = data.get("metadata") or {}
        body = {
            "apiVersion": generate["apiVersion"],
            "kind": generate["kind"],
            "metadata": {"name": generate.get("name") or "", **{k: v for k, v in metadata.items() if k != "name"}},
            **{key: value for key, value in data.items() if key not in ("apiVersion", "kind", "metadata")},
        }
        written = write_value(body, expressions, below, mixes=True)
        return _apply(self._namespace(generate, expressions, path), f"dyn({written.text})")

    def _clone(self, generate: JSONObject, expressions: RuleExpressions, path: str) -> Cel:
        info, clone = self._info(generate, path), generate["clone"]
        below = join_path(path, "clone")
        name = _text(clone.get("name") or "", expressions, join_path(below, "name"))
        source = _text(clone.get("namespace") or "", expressions, join_path(below, "namespace"))
        target = _text(generate.get("name") or "", expressions, join_path(path, "name"))
        if target.text != name.text:
            reason = "the copy has another name than its source, and CEL has no function that renames an object"
            raise UnconvertibleError("clone-rename", join_path(path, "name"), reason, "give the copy the source's name")
        if generate.get("synchronize"):
            self.notes.append(Note("clone-kept", below, "the copy stays when the policy is removed, as before"))
        namespace = self._namespace(generate, expressions, path)
        parts = literal(info.api_version), literal(info.plural), source
        read = read_call("Get", parts, (name,), expressions.names, join_path(below, "namespace"))
        made = _apply(namespace, read.text)
        return _unless_same(namespace, source, made, below)

    def _clone_list(self, generate: JSONObject, expressions: RuleExpressions, path: str) -> Cel:
        clone, below = generate["cloneList"], join_path(path, "cloneList")
        source = _text(clone.get("namespace") or "", expressions, join_path(below, "namespace"))
        namespace = self._namespace(generate, expressions, path)
        selector = clone.get("selector") or {}
        labels = selector.get("matchLabels") or {}
        if selector.get("matchExpressions") or has_variable(labels) or any(_is_wild(each) for each in labels.items()):
            reason = "the list of objects is selected by labels that are equal, nothing else"
            advice = "select by matchLabels without wildcards"
            raise UnconvertibleError("clone-selector", join_path(below, "selector"), reason, advice)
        calls = []
        for number, written in enumerate(clone.get("kinds") or ()):
            api_version, _, kind = str(written).rpartition("/")
            info = self._kind(api_version, kind, f"{below}.kinds[{number}]")
            parts = literal(info.api_version), literal(info.plural), source
            selected = (literal(labels),) if labels else ()
            read = read_call("List", parts, selected, expressions.names, join_path(below, "namespace"))
            calls.append(_apply(namespace, read.text))
        if not calls:
            raise UnconvertibleError("clone-kinds", below, "the list of kinds is empty", "name the kinds")
        if generate.get("synchronize"):
            text = "copies stay when the policy is removed, unlike those of the old rule"
            self.notes.append(Note("clone-kept", below, text))
        made = Cel(" && ".join(each.within(Level.AND) for each in calls), CelType.BOOL, Level.AND)
        return _unless_same(namespace, source, made if len(calls) > 1 else calls[0], below)

    def _namespace(self, generate: JSONObject, expressions: RuleExpressions, path: str) -> Cel:
        return _text(generate.get("namespace") or "", expressions, join_path(path, "namespace"))

    def _info(self, generate: JSONObject, path: str) -> KindInfo:
        return self._kind(str(generate.get("apiVersion") or ""), str(generate.get("kind") or ""), path)

    def _kind(self, api_version: str, kind: str, path: str) -> KindInfo:
        if has_variable(api_version) or has_variable(kind):
            raise UnconvertibleError("computed-kind", path, "the kind is computed", "write a rule for each kind")
        found = self.table.find(GVK(*parse_api_version(api_version), kind))
        if found is None:
            advice = "give its CustomResourceDefinition with --crd"
            raise UnconvertibleError("unknown-kind", path, f"kind `{api_version}/{kind}` is not known", advice)
        return found


def _text(value: JSON, expressions: RuleExpressions, path: str) -> Cel:
    return write_text(value, expressions, path) if has_variable(value) else literal(str(value))


def _is_wild(entry: tuple[str, JSON]) -> bool:
    return any(character in f"{entry[0]}{entry[1]}" for character in "*?")


def _apply(namespace: Cel, made: str) -> Cel:
    return Cel(f"generator.Apply({namespace.text}, [{made}])", CelType.BOOL)


def _unless_same(namespace: Cel, source: Cel, made: Cel, path: str) -> Cel:
    """Return a call that is left out where the source would be copied onto itself."""
    if namespace.text == source.text:
        reason = "the source is in the namespace of the copy, so the rule generates nothing"
        raise UnconvertibleError("clone-onto-itself", join_path(path, "namespace"), reason, "remove the rule")
    both = (namespace.text[:1], source.text[:1])
    if all(each in ("'", '"') for each in both):
        return made
    return ternary(compare(namespace, "==", source), TRUE, made)
