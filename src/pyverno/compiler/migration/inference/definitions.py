"""Definitions of the kinds that policies match and no table knows, from what the rules of the policies show."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from pyverno.compiler.migration.inference.evidence import Evidence, type_of
from pyverno.compiler.migration.inference.patterns import read_pattern
from pyverno.compiler.migration.inference.queries import NOTHING, Places, place_of, read_query
from pyverno.errors import PyvernoError
from pyverno.kube.gvk import KindSelector, parse_kind_selector
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.kinds import KindTable
from pyverno.kube.quantity import try_quantity
from pyverno.kube.time.duration import try_duration
from pyverno.kube.wildcard import has_wildcard
from pyverno.lang.jmespath.expression import compile_expression
from pyverno.lang.template.syntax import parse_string
from pyverno.policy.kinds import KNOWN_KINDS

__all__ = ["infer_definitions", "known_definitions", "read_rule"]

_VERSION: Final = "v1"
"""The version of objects where rules match any."""

_STANDARD: Final = ("apiVersion", "kind", "metadata")
_MEMBERSHIP: Final = ("In", "NotIn", "AnyIn", "AllIn", "AnyNotIn", "AllNotIn")


def infer_definitions(
    documents: Iterable[JSONObject], kinds: KindTable, examples: Sequence[JSONObject] = ()
) -> tuple[JSONObject, ...]:
    """Return a CustomResourceDefinition for every unknown kind of a known group that ClusterPolicies match.

    Types of `examples` count more than those that rules suggest. The plural name and the scope are guesses.
    """
    found: dict[tuple[str, str], tuple[Evidence, set[str]]] = {}
    for document in documents:
        rules = (document.get("spec") or {}).get("rules")
        for rule in rules if isinstance(rules, list) else ():
            for selector in _unknown(rule, kinds) if isinstance(rule, dict) else ():
                evidence, versions = found.setdefault((selector.group, selector.kind), (Evidence(), set()))
                versions.add(selector.version)
                _Reader(evidence).read(rule)
    return tuple(
        _definition(group, kind, versions, evidence, examples) for (group, kind), (evidence, versions) in found.items()
    )


def read_rule(rule: JSONObject, found: Evidence) -> None:
    """Note what a rule reads of objects, and the constants that it holds the values against.

    >>> found = Evidence()
    >>> read_rule({"validate": {"pattern": {"spec": {"replicas": ">1"}}}}, found)
    >>> [*found.field("spec").field("replicas").constants.values()]
    ['>1']
    """
    _Reader(found).read(rule)


def known_definitions(
    documents: Iterable[JSONObject], definitions: Sequence[JSONObject] = (), examples: Sequence[JSONObject] = ()
) -> tuple[JSONObject, ...]:
    """Return the given definitions, and inferred ones of the custom kinds that have none."""
    return (*definitions, *infer_definitions(documents, KNOWN_KINDS.with_crds(definitions), examples))


def _unknown(rule: JSONObject, kinds: KindTable) -> Iterator[KindSelector]:
    for block in _match_blocks(rule.get("match")):
        texts = (block.get("resources") or {}).get("kinds")
        for text in texts if isinstance(texts, list) else ():
            try:
                selector = parse_kind_selector(str(text))
            except PyvernoError:
                continue  # the compiler reports it
            is_exact = not has_wildcard(selector.kind) and selector.group and not has_wildcard(selector.group)
            if is_exact and not selector.subresource and not kinds.select(selector):
                yield selector


def _match_blocks(match: JSON) -> Iterator[JSONObject]:
    if isinstance(match, dict):
        listed = [each for name in ("any", "all") for each in match.get(name) or ()]
        yield from (each for each in (*listed, match) if isinstance(each, dict))


def _definition(
    group: str, kind: str, versions: Iterable[str], evidence: Evidence, examples: Sequence[JSONObject]
) -> JSONObject:
    for each in examples:
        if str(each.get("apiVersion", "")).rpartition("/")[0] == group and each.get("kind") == kind:
            evidence.see(each)
    for name in _STANDARD:
        evidence.fields.pop(name, None)
    schema: JSONObject = {"type": "object", "properties": {}, **(evidence.schema() if evidence.fields else {})}
    names = sorted({each if each and not has_wildcard(each) else _VERSION for each in versions})
    plural = f"{kind.lower()}s"
    is_cluster = kind.startswith("Cluster") and kind != "Cluster"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Cluster" if is_cluster else "Namespaced",
            "names": {"kind": kind, "plural": plural},
            "versions": [
                {"name": name, "served": True, "storage": index == 0, "schema": {"openAPIV3Schema": schema}}
                for index, name in enumerate(names)
            ],
        },
    }


class _Reader:
    """Reads one rule; `names` are the values that its expressions can read."""

    def __init__(self, root: Evidence) -> None:
        self.root = root
        self.names: dict[str, Places] = {
            "request": Places(members={"object": place_of(root), "oldObject": place_of(root)})
        }

    def read(self, rule: JSONObject) -> None:
        self._context(rule.get("context"))
        self._conditions(rule.get("preconditions"))
        for name in ("validate", "mutate", "generate"):
            section = rule.get(name)
            if isinstance(section, dict):
                self._section(section, self.root)

    def _section(self, section: JSONObject, at: Evidence | None) -> None:
        if at is not None:
            for name in ("pattern", "patchStrategicMerge"):
                read_pattern(section.get(name), at, self._text)
            for each in section.get("anyPattern") or ():
                read_pattern(each, at, self._text)
        deny = section.get("deny")
        if isinstance(deny, dict):
            self._conditions(deny.get("conditions"))
        for entry in section.get("foreach") or ():
            if isinstance(entry, dict):
                self._foreach(entry)

    def _foreach(self, entry: JSONObject) -> None:
        before = dict(self.names)
        found = self._query(entry.get("list"))
        element = found.elements()
        self.names["element"] = element
        if entry.get("name"):
            self.names[str(entry["name"])] = element
        self._context(entry.get("context"))
        self._conditions(entry.get("preconditions"))
        self._section(entry, element.direct[0] if element.direct else None)
        self.names = before

    def _context(self, entries: JSON) -> None:
        for entry in entries if isinstance(entries, list) else ():
            variable = entry.get("variable") if isinstance(entry, dict) else None
            if not isinstance(variable, dict):
                continue
            found = self._text(variable["value"]) if isinstance(variable.get("value"), str) else NOTHING
            if variable.get("jmesPath"):
                found = self._query(variable["jmesPath"], found if "value" in variable else None)
            if "default" in variable:
                found.compare_with(variable["default"])
            self.names[str(entry.get("name"))] = found

    def _conditions(self, conditions: JSON) -> None:
        if isinstance(conditions, dict) and "operator" not in conditions:
            conditions = [*(conditions.get("any") or ()), *(conditions.get("all") or ())]
        for each in conditions if isinstance(conditions, list) else ():
            if not isinstance(each, dict):
                continue
            if "operator" not in each:
                self._conditions(each)
                continue
            self._compare(each.get("key"), str(each["operator"]), each.get("value"))
            self._compare(each.get("value"), str(each["operator"]), each.get("key"))

    def _compare(self, key: JSON, operator: str, value: JSON) -> None:
        found = self._text(key) if isinstance(key, str) else NOTHING
        if isinstance(value, str) and "{{" in value:
            return
        found.remember(value)
        if operator in _MEMBERSHIP:
            for each in value if isinstance(value, list) else [value]:
                found.show_member(type_of(each))
        elif operator in ("Equals", "Equal", "NotEquals", "NotEqual"):
            found.compare_with(value)
        elif isinstance(value, str) and not value.isdecimal() and _is_amount(value):
            found.show("string")
        else:
            found.show("integer")

    def _text(self, text: str) -> Places:
        """Read a text with variables; return the places of its value if it is one variable as a whole."""
        if "{{" not in text:
            return NOTHING
        try:
            parsed = parse_string(text)
            values = [
                NOTHING if each.constant is not None else read_query(compile_expression(each.text).ast, self._root)
                for each in parsed.occurrences
            ]
        except PyvernoError:
            return NOTHING  # the conversion reports it
        return values[parsed.whole] if parsed.whole is not None else NOTHING

    def _query(self, text: JSON, current: Places | None = None) -> Places:
        if not isinstance(text, str):
            return NOTHING
        if "{{" in text:
            return self._text(text)
        try:
            return read_query(compile_expression(text).ast, self._root if current is None else current)
        except PyvernoError:
            return NOTHING  # the conversion reports it

    @property
    def _root(self) -> Places:
        return Places(members=self.names)


def _is_amount(text: str) -> bool:
    return try_duration(text) is not None or try_quantity(text) is not None
