"""Vocabulary of policies: the kinds, field names and constants that the documents of both sides mention.

Objects made of it reach the branches of a policy; random ones hardly ever do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from pyverno.compiler.cel.typechecking import custom_schemas
from pyverno.compiler.equivalence.circumstances import Circumstances, circumstances_of
from pyverno.compiler.equivalence.readings import Reading, readings_of
from pyverno.compiler.equivalence.standards import (
    STANDARD_FIELDS,
    names_standards,
    standard_readings,
    standard_values,
)
from pyverno.engine.explain.samples import samples
from pyverno.errors import PyvernoError
from pyverno.kube.gvk import parse_kind_selector
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.kinds import KindInfo, KindTable
from pyverno.lang.pattern.anchors import parse_anchor
from pyverno.policy.kinds import KNOWN_KINDS, Family, find_kind
from pyverno.value import dataclass, field

__all__ = ["Vocabulary", "vocabulary_of"]

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TEXT: Final = re.compile(r"""'((?:[^'\\\n]|\\.)*)'|"((?:[^"\\\n]|\\.)*)"|`([^`\n]*)`""")
_VARIABLE: Final = re.compile(r"\{\{[^{}]*\}\}")
_NUMBER: Final = re.compile(r"(?<![\w.])-?\d{1,12}(?![\w.])")
_MAPS: Final = ("labels", "annotations", "matchLabels", "nodeSelector", "selector", "data", "stringData", "limits")
_KEY: Final = re.compile(
    rf"""\b({"|".join(_MAPS)}|requests)(?:\.orValue\(\{{\}}\))?(?:\s*\|\|\s*`\{{\}}`\s*,\s*'([^']+)'|\.\??([A-Za-z_][\w]*)|\[\??['"]([^'"]+)['"]\]|\."([^"]+)")"""
)
_WORKLOADS: Final = ("DaemonSet", "Deployment", "Job", "ReplicaSet", "ReplicationController", "StatefulSet", "CronJob")
_REGEX: Final = re.compile(r"\\\\|^\^|\[\^?[a-zA-Z0-9]-|\(\?s\)")
_METHODS: Final = frozenset({"", "orValue", "exists", "all", "hasValue", "filter", "map", "optMap", "value"})
_SCOPE_WORDS: Final = frozenset(
    {"kinds", "operations", "apiGroups", "apiVersions", "resources", "scope", "matchPolicy"}
)
_RULE_WORDS: Final = frozenset(
    {
        "name",
        "validationFailureAction",
        "validationActions",
        "failurePolicy",
        "failureAction",
        "background",
        "evaluation",
    }
)
_CHECK_WORDS: Final = frozenset({"message", "failureAction", "allowExistingViolations", "messageExpression"})
_CHECKS: Final = frozenset({"pattern", "anyPattern", "deny", "foreach", "podSecurity", "expression", "cel"})
_OPERATORS: Final = re.compile(r"^\s*[!<>]|[|&]")
_LONGEST: Final = 200
_MOST_KINDS: Final = 40
_LOCAL: Final = (Family.RULES, Family.CLEANUP, Family.CEL)
_WHERE_KINDS: Final = ("matchConstraints", "match", "exclude", "targetMatchConstraints")


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Kinds that the sides match, names that they mention, and constants in the order of their first mention.

    `keys` are the keys of maps such as labels that they mention, by the name of the map. `schemas` are those of custom
    kinds, by group, version and kind. `circumstances` are users and namespaces, `subresources` those that they match,
    `readings` the fields that they read with the constants beside each. `homes` are the namespaces of policies that
    judge the objects of one namespace only.
    """

    kinds: tuple[KindInfo, ...]
    names: frozenset[str]
    constants: tuple[JSON, ...]
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    schemas: Mapping[tuple[str, str, str], JSONObject] = field(default_factory=dict)
    circumstances: Circumstances = field(default_factory=Circumstances)
    subresources: tuple[tuple[KindInfo, str], ...] = ()
    readings: tuple[Reading, ...] = ()
    homes: tuple[str, ...] = ()


def vocabulary_of(documents: Iterable[JSONObject], definitions: Iterable[JSONObject] = ()) -> Vocabulary:
    """Return the vocabulary of policies of any kind; patterns and conditions give values that satisfy and break them.

    `definitions` are the CustomResourceDefinitions of kinds that are not built in.
    """
    documents, definitions = [*documents], [*definitions]
    kinds = KNOWN_KINDS.with_crds(definitions)
    found_kinds: dict[KindInfo, None] = {}
    subresources: dict[tuple[KindInfo, str], None] = {}
    names: set[str] = set()
    constants: dict[tuple[type, str], JSON] = {}
    for document in documents:
        spec = document.get("spec")
        for block in _blocks(spec):
            found_kinds.update(dict.fromkeys(_kinds(block, kinds)))
            subresources.update(dict.fromkeys(_subresources(block, kinds)))
        for value in _leaves(spec, names):
            for each in _constants(value):
                if not isinstance(each, str) or len(each) <= _LONGEST:
                    constants.setdefault((type(each), str(each)), each)
    readings = readings_of(documents)
    if names_standards(documents):
        readings = (*readings, *standard_readings())
        names.update(STANDARD_FIELDS)
        for text in standard_values():
            constants.setdefault((str, text), text)
    if any(info.kind == "Pod" for info in found_kinds):
        found_kinds.update(dict.fromkeys(info for kind in _WORKLOADS for info in kinds.by_kind(kind)[:1]))
    keys: dict[str, dict[str, None]] = {}
    for document in documents:
        for holder, key in _keys(document.get("spec")):
            keys.setdefault(holder, {})[key] = None
    return Vocabulary(
        tuple(found_kinds)[:_MOST_KINDS],
        frozenset(names),
        tuple(constants.values()),
        {holder: tuple(found) for holder, found in keys.items()},
        {(gvk.group, gvk.version, gvk.kind): schema for each in definitions for gvk, schema in custom_schemas(each)},
        circumstances_of(documents),
        tuple(subresources)[:_MOST_KINDS],
        readings,
        _homes(documents),
    )


def _homes(documents: Iterable[JSONObject]) -> tuple[str, ...]:
    """Return the namespaces whose objects alone a policy judges, each once."""
    found: dict[str, None] = {}
    for document in documents:
        row = find_kind(str(document.get("apiVersion")).rpartition("/")[0], str(document.get("kind")))
        namespace = (document.get("metadata") or {}).get("namespace")
        if row is not None and row.namespaced and row.family in _LOCAL and namespace:
            found[str(namespace)] = None
    return tuple(found)


def _keys(value: JSON) -> Iterator[tuple[str, str]]:
    """Yield the keys of labels and their like: those of patterns, and those that expressions read."""
    if isinstance(value, dict):
        for key, below in value.items():
            anchor = parse_anchor(key)
            name = anchor.key if anchor is not None else key
            if name in _MAPS and isinstance(below, dict):
                for inner in below:
                    found = parse_anchor(inner)
                    yield name, (found.key if found is not None else inner).replace("*", "x").replace("?", "x")
            yield from _keys(below)
    elif isinstance(value, list):
        for below in value:
            yield from _keys(below)
    elif isinstance(value, str):
        for match in _KEY.finditer(value):
            key = next((each for each in match.groups()[1:] if each), "")
            if key not in _METHODS:
                yield match[1], key


def _blocks(value: JSON, *, is_inside: bool = False) -> Iterator[JSONObject]:
    """Yield the maps that name kinds or resources, below the fields that match requests."""
    if isinstance(value, dict):
        if is_inside and ("kinds" in value or "resources" in value):
            yield value
        for key, below in value.items():
            yield from _blocks(below, is_inside=is_inside or key in _WHERE_KINDS)
    elif isinstance(value, list):
        for below in value:
            yield from _blocks(below, is_inside=is_inside)


def _kinds(block: JSONObject, kinds: KindTable) -> Iterator[KindInfo]:
    for text in _texts(block.get("kinds")):
        try:
            yield from (info for info in kinds.select(parse_kind_selector(text)))
        except PyvernoError:
            continue  # the compiler reports it
    groups, versions = _texts(block.get("apiGroups")) or ["*"], _texts(block.get("apiVersions")) or ["*"]
    for plural in _texts(block.get("resources")):
        for info in kinds:
            if (
                plural.partition("/")[0] in ("*", info.plural)
                and (info.group in groups or "*" in groups)
                and (info.version in versions or "*" in versions)
            ):
                yield info


def _subresources(block: JSONObject, kinds: KindTable) -> Iterator[tuple[KindInfo, str]]:
    """Yield the subresources that a block matches; one for Pods also covers that of ephemeral containers."""
    for text in _texts(block.get("kinds")):
        try:
            selector = parse_kind_selector(text)
        except PyvernoError:
            continue  # the compiler reports it
        for info in kinds.select(selector):
            if selector.kind == "*" and not selector.subresource:
                continue
            fitting = (each for each in info.subresources if selector.matches(info.gvk, each))
            yield from ((info, each) for each in fitting)
            if info.kind == "Pod" and not selector.subresource:
                yield info, "ephemeralcontainers"
    for text in _texts(block.get("resources")):
        plural, _, name = text.partition("/")
        if name:
            chosen = (info for info in kinds if plural in ("*", info.plural) and {info.group, "*"} & _groups(block))
            yield from ((info, each) for info in chosen for each in info.subresources if name in ("*", each))


def _groups(block: JSONObject) -> set[str]:
    return set(_texts(block.get("apiGroups")) or ["*"])


def _texts(value: JSON) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def _leaves(value: JSON, names: set[str], *, is_scope: bool = False) -> Iterator[JSON]:
    """Yield every scalar that can be a value of an object; names of keys, and every word of a text, count as names."""
    if isinstance(value, dict):
        unwanted = _of_policy(value, is_scope=is_scope)
        for key, below in value.items():
            if key in unwanted:
                continue
            anchor = parse_anchor(key)
            names.add(anchor.key if anchor is not None else key)
            if any(each in key for each in "./*?"):
                yield key  # labels and annotations are matched by their keys
            yield from _leaves(below, names, is_scope=is_scope or key in _WHERE_KINDS)
    elif isinstance(value, list):
        for below in value:
            yield from _leaves(below, names, is_scope=is_scope)
    else:
        if isinstance(value, str):
            names.update(_NAME.findall(value))
        yield value


def _of_policy(holder: JSONObject, *, is_scope: bool) -> frozenset[str]:
    """Return the keys of a map whose values are words of the policy, and no values of objects."""
    if is_scope:
        return _SCOPE_WORDS
    if "operator" in holder and "key" in holder and "value" in holder:
        return frozenset({"operator", "message"})
    if "match" in holder or "matchConstraints" in holder or "rules" in holder:
        return _RULE_WORDS
    return _CHECK_WORDS if not _CHECKS.isdisjoint(holder) else frozenset()


def _filled(text: str) -> str:
    """Return a text with names in the place of its variables; that of the namespace is one of generated objects.

    >>> _filled("{{ request.namespace }}/*")
    'default/*'
    """
    return _VARIABLE.sub(lambda found: "default" if "namespace" in found[0] else "a", text)


def _constants(value: JSON) -> Iterator[JSON]:
    if not isinstance(value, str):
        if value is not None:
            yield value
        return
    if any(each in value for each in ("(", "{{", "==", "\n")):
        # an expression: its own constants
        for found in _TEXT.finditer(value):
            text = next(each for each in found.groups() if each is not None)
            if _REGEX.search(text):
                continue  # a regular expression is no value
            yield text
            yield from samples(text)
        if not value.startswith("{{") or not value.endswith("}}") or value.count("{{") > 1:
            yield from samples(_filled(value))
        yield from (int(number) for number in _NUMBER.findall(value))
        return
    if not _OPERATORS.search(value):
        # Kyverno: a value that equals the text of its pattern matches, which tests nothing
        yield value
    yield from samples(value)
