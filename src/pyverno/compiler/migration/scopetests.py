"""Tests of match and exclude blocks that look at the object or the user: names, namespaces, labels, subjects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pyverno.compiler.migration.outcome import UnconvertibleError, join_path
from pyverno.compiler.migration.patterns.wildcards import text_matches
from pyverno.compiler.migration.text import FALSE, Cel, CelType, Reference, all_of, any_of, compare, literal
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.wildcard import has_wildcard
from pyverno.kube.yaml.fieldpath import path_text
from pyverno.policy.match import ResourceFilter, Subject
from pyverno.policy.subresources import POD_SUBRESOURCES
from pyverno.value import dataclass

__all__ = ["Target", "object_tests", "one_of", "rule_path", "selector_test"]


@dataclass(frozen=True, slots=True, order=True)
class Target:
    """One resource that a rule matches: group, version, plural, kind and subresource; `*` stands for all."""

    group: str
    version: str
    plural: str
    kind: str
    subresource: str = ""
    is_namespaced: bool = True

    @property
    def resource(self) -> str:
        """The name as resource rules write it."""
        return f"{self.plural}/{self.subresource}" if self.subresource else self.plural


def object_tests(block: ResourceFilter, targets: Sequence[Target], root: Reference) -> dict[str, Cel]:
    """Return the tests of a block that look at the object or the user, by name; raises UnconvertibleError for roles."""
    resources, user = block.resources, block.user_info
    path = rule_path(block.path)
    if user.roles or user.cluster_roles:
        name = "roles" if user.roles else "clusterRoles"
        raise UnconvertibleError(
            "roles", join_path(path, name), "CEL has no list of the user's roles", "match users or groups instead"
        )
    metadata = root.field("metadata")
    found: dict[str, Cel] = {}
    if resources.name or resources.names:
        found["name"] = _name_test((*((resources.name,) if resources.name else ()), *resources.names), metadata)
        if resources.name and resources.names:
            found["name"] = all_of([_name_test((resources.name,), metadata), _name_test(resources.names, metadata)])
    if resources.namespaces:
        found["namespace"] = _namespace_test(resources.namespaces, targets, metadata)
    if resources.annotations:
        found["annotations"] = _annotation_test(resources.annotations, metadata.field("annotations"))
    if resources.selector is not None:
        found["labels"] = selector_test(resources.selector, metadata.field("labels"), join_path(path, "selector"))
    if user.subjects:
        found["user"] = any_of(_subject_test(each) for each in user.subjects)
    return found


def _texts_test(value: Cel, patterns: Iterable[str]) -> Cel:
    plain = [each for each in patterns if not has_wildcard(each)]
    tests = [one_of(value, plain)] if plain else []
    return any_of([*tests, *(text_matches(value, each) for each in patterns if has_wildcard(each))])


def _name_test(patterns: Sequence[str], metadata: Reference) -> Cel:
    generated = metadata.field("generateName").or_value(literal(""))
    return _texts_test(metadata.field("name").or_value(generated), patterns)


def _namespace_test(patterns: Sequence[str], targets: Sequence[Target], metadata: Reference) -> Cel:
    is_namespace = [each for each in targets if each.kind == "Namespace" and not each.group]
    of_object = metadata.field("namespace").or_value(literal(""))
    if any(each.subresource not in ("", "status", *POD_SUBRESOURCES) for each in targets):
        of_object = Reference("request").field("namespace").or_value(literal(""))
    elsewhere = _texts_test(of_object, patterns)
    if not is_namespace and not any(each.kind == "*" for each in targets):
        return elsewhere
    of_namespace = _texts_test(metadata.field("name").or_value(literal("")), patterns)
    if len(is_namespace) == len(targets):
        return of_namespace
    is_one = compare(Cel("request.kind.kind"), "==", literal("Namespace"))
    return any_of([all_of([is_one, of_namespace]), all_of([is_one.not_(), elsewhere])])


def _annotation_test(wanted: Mapping[str, str], annotations: Reference) -> Cel:
    tests = []
    for key, value in wanted.items():
        if has_wildcard(key):
            name, entry = Cel("k", CelType.STRING), Cel(f"{annotations.or_empty().text}[k]", CelType.STRING)
            test = all_of([text_matches(name, key), text_matches(entry, value)])
            tests.append(annotations.or_empty().macro("exists", "k", test))
        else:
            tests.append(_entry_test(annotations.field(key), value))
    return all_of(tests)


def _entry_test(entry: Reference, pattern: str) -> Cel:
    """Return whether a label or annotation is there and has a value, which may have wildcards."""
    test = text_matches(entry.or_value(literal("")), pattern)
    if test.text == "true":
        return entry.is_present()
    if not pattern.replace("*", ""):
        return all_of([entry.is_present(), test])
    return test


def selector_test(selector: JSONObject, labels: Reference, path: str) -> Cel:
    """Return whether labels fit a label selector, whose matchLabels may have wildcards.

    >>> from pyverno.compiler.migration.schema import SchemaBook
    >>> labels = Reference("object", SchemaBook().any_object()).field("metadata").field("labels")
    >>> str(selector_test({"matchLabels": {"app": "web"}}, labels, "selector"))
    "object.metadata.?labels.?app.orValue('') == 'web'"
    """
    tests: list[Cel] = []
    for key, value in (selector.get("matchLabels") or {}).items():
        if has_wildcard(key):
            all_labels = labels.or_empty()
            fits = all_of(
                [
                    text_matches(Cel("k", CelType.STRING), key),
                    text_matches(Cel(f"{all_labels.text}[k]", CelType.STRING), str(value)),
                ]
            )
            tests.append(all_labels.macro("exists", "k", fits))
        else:
            tests.append(_entry_test(labels.field(key), str(value)))
    for each in selector.get("matchExpressions") or ():
        entry, values = labels.field(each["key"]), [str(value) for value in each.get("values") or ()]
        match each.get("operator"):
            case "Exists":
                tests.append(entry.is_present())
            case "DoesNotExist":
                tests.append(entry.is_present().not_())
            case "In":
                is_in = one_of(entry.or_value(literal("")), values)
                tests.append(all_of([entry.is_present(), is_in]) if "" in values else is_in)
            case "NotIn":
                is_in = one_of(entry.or_value(literal("")), values)
                tests.append((all_of([entry.is_present(), is_in]) if "" in values else is_in).not_())
            case operator:
                raise UnconvertibleError("selector", path, f"unknown operator `{operator}`")
    return all_of(tests)


def _subject_test(subject: Subject) -> Cel:
    user = Reference("request.userInfo")
    name = user.field("username").or_value(literal(""))
    match subject.kind:
        case "User":
            return text_matches(name, subject.name)
        case "Group":
            groups = Cel(f"{user.field('groups').optional().text}.orValue([])", CelType.LIST)
            if not has_wildcard(subject.name):
                return compare(literal(subject.name), "in", groups)
            return groups.macro("exists", "g", text_matches(Cel("g", CelType.STRING), subject.name))
        case "ServiceAccount":
            return text_matches(name, f"system:serviceaccount:{subject.namespace}:{subject.name}")
    return FALSE


def one_of(value: Cel, texts: Iterable[str]) -> Cel:
    """Return whether a text is one of several.

    >>> str(one_of(Cel("request.operation"), ["UPDATE", "CREATE"]))
    "request.operation in ['CREATE', 'UPDATE']"
    """
    listed = sorted(dict.fromkeys(texts))
    if len(listed) == 1:
        return compare(value, "==", literal(listed[0]))
    return compare(value, "in", literal(list[JSON](listed)))


def rule_path(path: Sequence[str | int]) -> str:
    """Return the text of a path below the rule.

    >>> rule_path(("spec", "rules", 0, "match", "any", 1))
    'match.any[1]'
    """
    steps = tuple(path)
    return path_text(steps[3:] if steps[:2] == ("spec", "rules") else steps)
