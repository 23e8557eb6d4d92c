"""match and exclude as matchConstraints and matchConditions.

Kinds, operations and the namespaceSelector become matchConstraints; everything else becomes conditions. An
objectSelector is never written: the API server also applies it to the old object. Names are tested by conditions,
because `resourceNames` knows neither wildcards nor generated names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from pyverno.compiler.migration.outcome import Note, UnconvertibleError, join_path
from pyverno.compiler.migration.schema import SchemaBook
from pyverno.compiler.migration.scopetests import Target, object_tests, one_of, rule_path
from pyverno.compiler.migration.text import (
    FALSE,
    TRUE,
    Cel,
    CelType,
    Reference,
    all_of,
    any_of,
    compare,
    literal,
)
from pyverno.kube.gvk import parse_kind_selector
from pyverno.kube.json import JSONObject
from pyverno.kube.kinds import KindInfo, KindTable
from pyverno.kube.wildcard import has_wildcard
from pyverno.policy.match import MatchBlocks, ResourceFilter
from pyverno.policy.subresources import EPHEMERAL_CONTAINERS, POD_SUBRESOURCES
from pyverno.value import dataclass

__all__ = ["ADMITTED", "ANY_OPERATION", "Condition", "Scope", "Target", "convert_scope"]

ADMITTED: Final = ("CREATE", "UPDATE")
"""Operations of rules that judge the new object."""

ANY_OPERATION: Final = ("CREATE", "UPDATE", "DELETE")
"""Operations of rules that also judge an object that is deleted."""

_CONNECT: Final = frozenset({"exec", "attach", "portforward", "proxy"})


@dataclass(frozen=True, slots=True)
class Condition:
    """A match condition: its name and its expression."""

    name: str
    expression: Cel


@dataclass(frozen=True, slots=True)
class Scope:
    """The requests of a rule, in the terms of policies in CEL.

    `reads_users` means that a condition reads the user of the request, which a background scan does not know.
    """

    targets: tuple[Target, ...]
    operations: tuple[str, ...]
    conditions: tuple[Condition, ...] = ()
    namespace_selector: JSONObject | None = None
    scope: str = ""
    reads_users: bool = False
    notes: tuple[Note, ...] = ()

    @property
    def subject(self) -> str:
        """The root of the object that is judged: the old one on DELETE."""
        return subject_root(self.operations)

    @property
    def constraints(self) -> JSONObject:
        """The value of `matchConstraints`."""
        grouped: dict[tuple[str, str, str], list[Target]] = {}
        for target in self.targets:
            grouped.setdefault((target.group, target.version, ""), []).append(target)
        rules: list[JSONObject] = []
        for (group, version, _), targets in sorted(grouped.items()):
            resources = sorted(dict.fromkeys(target.resource for target in targets))
            same = next(
                (each for each in rules if each["apiGroups"] == [group] and each["resources"] == resources), None
            )
            if same is not None:
                same["apiVersions"].append(version)
                continue
            rule: JSONObject = {
                "apiGroups": [group],
                "apiVersions": [version],
                "operations": list(self.operations),
                "resources": resources,
            }
            if self.scope:
                rule["scope"] = self.scope
            rules.append(rule)
        found: JSONObject = {"resourceRules": rules}
        if self.namespace_selector is not None:
            found["namespaceSelector"] = self.namespace_selector
        return found

    def kinds(self) -> tuple[Target, ...]:
        """Return the matched resources whose objects are those of their kind."""
        return tuple(each for each in self.targets if each.subresource in ("", *POD_SUBRESOURCES))


def subject_root(operations: Sequence[str]) -> str:
    """Return the expression of the object that a request with one of these operations is judged by.

    >>> subject_root(("CREATE", "DELETE"))
    "(request.operation == 'DELETE' ? oldObject : object)"
    """
    if "DELETE" not in operations:
        return "object"
    return "oldObject" if tuple(operations) == ("DELETE",) else "(request.operation == 'DELETE' ? oldObject : object)"


def convert_scope(
    match: MatchBlocks,
    exclude: MatchBlocks | None,
    table: KindTable,
    *,
    operations: Sequence[str] = ADMITTED,
    allowed: Sequence[str] = (),
    pod_subresources: frozenset[str] = EPHEMERAL_CONTAINERS,
    root: str = "",
) -> Scope:
    """Return the scope of match and exclude; `operations` are those of blocks that name none.

    `allowed` are the only operations that the action judges, if it does not judge all; `pod_subresources` are those of
    which a match of Pods takes requests too; `root` is the object that conditions look at, by default the one that is
    judged.

    Raises UnconvertibleError for roles, unknown kinds and whatever else CEL cannot ask.
    """
    return _Reader(match, exclude, table, (tuple(operations), tuple(allowed)), pod_subresources).read(root)


class _Reader:
    def __init__(
        self,
        match: MatchBlocks,
        exclude: MatchBlocks | None,
        table: KindTable,
        operations: tuple[tuple[str, ...], tuple[str, ...]],
        pod_subresources: frozenset[str],
    ) -> None:
        self.match, self.exclude, self.table, self.pod_subresources = match, exclude, table, pod_subresources
        self.default, self.allowed = operations
        self.is_any = bool(match.any)
        self.blocks = match.any or match.all or ((match.flat,) if match.flat is not None else ())
        self.notes: list[Note] = []
        self.scope = ""

    def read(self, given: str) -> Scope:
        if not self.blocks:
            raise UnconvertibleError("empty-match", rule_path(self.match.path), "an empty match matches nothing")
        targets, operations = self._targets(), self._operations()
        if not targets or not operations:
            raise UnconvertibleError(
                "empty-match", rule_path(self.match.path), "no request fits all blocks of match", "remove the rule"
            )
        selector = self._namespace_selector(targets)
        root = Reference(given or subject_root(operations), SchemaBook().any_object())
        tests = [self._test(block, targets, operations, root) for block in self.blocks]
        conditions: list[Condition] = []
        if self.is_any and len(tests) > 1:
            found = any_of(all_of(each.values()) for each in tests)
            if found.text != "true":
                conditions.append(Condition("match", found))
        else:
            for test in tests:
                for name, found in test.items():
                    conditions.append(Condition(_free(f"match-{name}", conditions), found))
        conditions += self._exclusions(targets, operations, root, conditions)
        kept = tuple(each for each in conditions if each.expression.text != "true")
        return Scope(
            targets,
            operations,
            kept,
            selector,
            self.scope,
            any(not block.user_info.is_empty for block in self._all_blocks()),
            tuple(self.notes),
        )

    def _all_blocks(self) -> tuple[ResourceFilter, ...]:
        return (*self.blocks, *(self.exclude.blocks if self.exclude is not None else ()))

    # ----------------------------------------------------------------------------------------------- kinds, operations

    def _targets(self) -> tuple[Target, ...]:
        groups = [self._block_targets(block) for block in self.blocks]
        if self.is_any:
            return tuple(sorted({each for group in groups for each in group}))
        common = set(groups[0])
        for group in groups[1:]:
            common &= set(group)
        return tuple(sorted(common))

    def _block_targets(self, block: ResourceFilter) -> tuple[Target, ...]:
        path = join_path(rule_path(block.path), "resources.kinds")
        if not block.resources.kinds:
            raise UnconvertibleError("no-kinds", path, "the block names no kinds", "name the kinds that are meant")
        return tuple(each for text in block.resources.kinds for each in self._select(text, path))

    def _select(self, text: str, path: str) -> Iterator[Target]:
        selector = parse_kind_selector(text)
        if selector.kind == "*" and selector.subresource in ("", "*"):
            yield Target(selector.group, selector.version, "*", "*", selector.subresource)
            return
        found = False
        for info in self.table.select(selector):
            for name in ("", *info.subresources):
                is_pod = name in self.pod_subresources and info.kind == "Pod" and not selector.subresource
                if selector.matches(info.gvk, name) or is_pod:
                    found = True
                    yield _target(info, name)
        if not found:
            raise UnconvertibleError(
                "unknown-kind",
                path,
                f"kind `{text}` is not known",
                "write it as group/version/Kind, or give its CustomResourceDefinition with --crd",
            )
        if has_wildcard(selector.kind):
            text = f"`{text}` was expanded to the kinds known today; kinds that come later are not matched"
            self.notes.append(Note("kind-wildcard", path, text))

    def _operations(self) -> tuple[str, ...]:
        listed = [
            tuple(each.value for each in block.resources.operations) or self._default(block) for block in self.blocks
        ]
        order = [each for each in ("CREATE", "UPDATE", "DELETE", "CONNECT") if not self.allowed or each in self.allowed]
        if self.is_any:
            return tuple(each for each in order if any(each in group for group in listed))
        return tuple(each for each in order if all(each in group for group in listed))

    def _default(self, block: ResourceFilter) -> tuple[str, ...]:
        subresources = {parse_kind_selector(text).subresource for text in block.resources.kinds}
        return ("CONNECT",) if subresources and subresources <= _CONNECT else self.default

    def _namespace_selector(self, targets: Sequence[Target]) -> JSONObject | None:
        """Return the namespaceSelector that all match blocks share; the reason is refused where they do not."""
        selectors = [block.resources.namespace_selector for block in self.blocks]
        written = [each for each in selectors if each is not None]
        if not written:
            return None
        place = join_path(rule_path(self.match.path), "namespaceSelector")
        if any(each != written[0] for each in written) or (self.is_any and len(written) != len(selectors)):
            raise UnconvertibleError(
                "namespace-selector", place, "only some blocks have this namespaceSelector", "split the rule"
            )
        return self._checked_selector(written[0], targets, place)

    def _checked_selector(self, selector: JSONObject, targets: Sequence[Target], path: str) -> JSONObject:
        if any(has_wildcard(f"{key}{value}") for key, value in (selector.get("matchLabels") or {}).items()):
            raise UnconvertibleError(
                "namespace-selector-wildcard",
                path,
                "a namespaceSelector of Kubernetes has no wildcards",
                "list the values",
            )
        expressions = selector.get("matchExpressions") or ()
        asks_for_labels = bool(selector.get("matchLabels")) or any(
            each.get("operator") in ("In", "Exists") for each in expressions
        )
        if not all(each.is_namespaced for each in targets):
            if not asks_for_labels:
                raise UnconvertibleError(
                    "namespace-selector",
                    path,
                    "an object without a namespace has no labels here, and is always selected by Kubernetes",
                    "split the rule by the scope of its kinds",
                )
            # objects without a namespace never have the labels; for Kubernetes they would always match
            self.scope = "Namespaced"
        return selector

    # ------------------------------------------------------------------------------------------------------ conditions

    def _test(
        self, block: ResourceFilter, targets: Sequence[Target], operations: Sequence[str], root: Reference
    ) -> dict[str, Cel]:
        """Return the tests of a match block by name."""
        own = set(self._block_targets(block))
        listed = tuple(each.value for each in block.resources.operations) or self._default(block)
        found = {
            "kind": _kind_test([each for each in targets if each in own], targets, rule_path(block.path)),
            "operation": _operation_test(listed, operations),
            **object_tests(block, targets, root),
        }
        return {name: each for name, each in found.items() if each.text != "true"}

    def _exclusions(
        self, targets: Sequence[Target], operations: Sequence[str], root: Reference, before: Sequence[Condition]
    ) -> list[Condition]:
        section = self.exclude
        if section is None or section.is_empty:
            return []
        blocks = section.any or section.all or ((section.flat,) if section.flat is not None else ())
        is_any = bool(section.any) or len(blocks) == 1
        tests = [self._exclude(block, targets, operations, root) for block in blocks]
        if not is_any:
            tests = [all_of(tests)]
        conditions: list[Condition] = []
        for test in tests:
            if test.text == "true":
                raise UnconvertibleError(
                    "all-excluded",
                    rule_path(section.path),
                    "exclude leaves nothing that match matches",
                    "remove the rule",
                )
            if test.text != "false":
                conditions.append(Condition(_free("exclude", [*before, *conditions]), test.not_()))
        return conditions

    def _exclude(
        self, block: ResourceFilter, targets: Sequence[Target], operations: Sequence[str], root: Reference
    ) -> Cel:
        path = rule_path(block.path)
        if block.is_empty:
            return FALSE
        resources = block.resources
        if resources.namespace_selector is not None:
            raise UnconvertibleError(
                "exclude-namespace-selector",
                join_path(path, "resources.namespaceSelector"),
                "conditions cannot read the labels of the namespace",
                "select the other namespaces in match, for example with operator NotIn",
            )
        kinds = TRUE
        if resources.kinds:
            own = {each for text in resources.kinds for each in self._select_known(text)}
            kinds = _kind_test([each for each in targets if each in own], targets, path)
        listed = tuple(each.value for each in resources.operations)
        operation = _operation_test(listed, operations) if listed else TRUE
        return all_of([kinds, operation, *object_tests(block, targets, root).values()])

    def _select_known(self, text: str) -> Iterator[Target]:
        try:
            yield from self._select(text, "")
        except UnconvertibleError:
            return  # an unknown kind excludes nothing


def _target(info: KindInfo, subresource: str) -> Target:
    return Target(info.group, info.version, info.plural, info.kind, subresource, info.namespaced)


def _kind_test(chosen: Sequence[Target], all_: Sequence[Target], path: str) -> Cel:
    """Return the test for some of the matched resources."""
    if len(chosen) == len(all_):
        return TRUE
    if not chosen:
        return FALSE
    if any(each.kind == "*" for each in all_):
        if any(each.kind == "*" for each in chosen):
            return TRUE
        return one_of(Cel("request.kind.kind", CelType.STRING), [each.kind for each in chosen])
    others = [each for each in all_ if each not in chosen]
    kinds = {each.kind for each in chosen}
    if not kinds & {each.kind for each in others}:
        return one_of(Cel("request.kind.kind", CelType.STRING), [each.kind for each in chosen])
    groups = {(each.group, each.kind) for each in chosen}
    if not groups & {(each.group, each.kind) for each in others}:
        return any_of(
            all_of(
                [
                    compare(Cel("request.kind.group"), "==", literal(group)),
                    compare(Cel("request.kind.kind"), "==", literal(kind)),
                ]
            )
            for group, kind in sorted(groups)
        )
    raise UnconvertibleError(
        "kind-test", path, "blocks differ in the versions or subresources of one kind", "split the rule by kind"
    )


def _operation_test(listed: Sequence[str], operations: Sequence[str]) -> Cel:
    if set(operations) <= set(listed):
        return TRUE
    chosen = [each for each in operations if each in listed]
    return one_of(Cel("request.operation", CelType.STRING), chosen) if chosen else FALSE


def _free(name: str, conditions: Sequence[Condition]) -> str:
    taken = {each.name for each in conditions}
    return name if name not in taken else next(f"{name}-{n}" for n in range(2, 999) if f"{name}-{n}" not in taken)
