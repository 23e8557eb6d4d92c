"""Validate rules as validations of a ValidatingPolicy: pattern, anyPattern, deny, foreach, podSecurity, CEL.

An update of an object that failed before passes where the rule allows existing violations and enforces; the variable
`failedBefore` judges the old object then. Preconditions become match conditions, or a guard where they read variables.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from pyverno.compiler.migration.conditions.blocks import conditions_test
from pyverno.compiler.migration.expressions import Names, Value, names_of, translate
from pyverno.compiler.migration.expressions.concatenation import as_text
from pyverno.compiler.migration.expressions.names import Refusal
from pyverno.compiler.migration.expressions.value import of_reference
from pyverno.compiler.migration.foreach import elements_pass
from pyverno.compiler.migration.frame import Frame, frame_of, home_of
from pyverno.compiler.migration.outcome import Note, UnconvertibleError
from pyverno.compiler.migration.patterns import any_holds, parts_of
from pyverno.compiler.migration.patterns.verdict import Context
from pyverno.compiler.migration.podsecurity import all_containers, pod_security_tests
from pyverno.compiler.migration.schema import SchemaBook
from pyverno.compiler.migration.scope import ADMITTED, ANY_OPERATION, Condition, convert_scope
from pyverno.compiler.migration.scopetests import Target, one_of
from pyverno.compiler.migration.text import (
    TRUE,
    Cel,
    CelType,
    Level,
    Reference,
    all_of,
    any_of,
    compare,
    literal,
    ternary,
)
from pyverno.compiler.migration.variables import variables_of
from pyverno.compiler.rules.validating import excuses_updates
from pyverno.kube.json import JSON, JSONObject
from pyverno.lazyregex import regex
from pyverno.policy.clusterpolicy import ClusterPolicy, FailurePolicy
from pyverno.policy.failureaction import FailureAction
from pyverno.policy.rule import Rule
from pyverno.policy.subresources import misses_scale, pod_subresources_of
from pyverno.policy.validate import Cel as WrittenCel
from pyverno.policy.validate import Validate
from pyverno.value import dataclass, field, replace

__all__ = ["DELETION_ERRORS", "RulePart", "convert_validate"]

Roots: TypeAlias = Sequence[tuple[tuple[Target, ...], Reference]]
_KIND: Final = Cel("request.kind.kind", CelType.STRING)
DELETION_ERRORS: Final = "deletion-errors"
"""The code of the note that a rule is an error for every deletion, which its conversion does not repeat."""

_LONG: Final = 110
_CONNECT_TOO: Final = (*ANY_OPERATION, "CONNECT")


@dataclass(frozen=True, slots=True, eq=False)
class RulePart:
    """The conversion of one rule: the frame, match conditions, variables and validations of a policy."""

    frame: Frame
    conditions: tuple[Condition, ...]
    variables: tuple[tuple[str, str], ...]
    validations: tuple[JSONObject, ...]
    audit_annotations: tuple[JSONObject, ...] = ()
    notes: tuple[Note, ...] = field(default_factory=tuple)


def convert_validate(policy: ClusterPolicy, rule: Rule, book: SchemaBook, *, assumes_types: bool = False) -> RulePart:
    """Convert a validate rule; raises UnconvertibleError."""
    validate = rule.action
    if not isinstance(validate, Validate):
        raise TypeError(type(validate).__name__)
    _refuse_unsupported(validate)
    judges_deleted = validate.deny is not None or bool(validate.foreach) or validate.cel is not None
    frame = frame_of(
        policy,
        rule,
        book,
        operations=_CONNECT_TOO if judges_deleted else ADMITTED,
        allowed=() if judges_deleted else ADMITTED,
    )
    return _Converter(policy, rule, validate, frame, Context(assumes_types=assumes_types)).convert()


def _refuse_unsupported(validate: Validate) -> None:
    if validate.manifests is not None:
        raise UnconvertibleError(
            "manifests", "validate.manifests", "CEL cannot verify the signature of a manifest", "keep the rule"
        )
    forms = (validate.pattern, validate.any_pattern, validate.deny, validate.foreach or None)
    if all(each is None for each in (*forms, validate.pod_security, validate.cel)):
        raise UnconvertibleError("assert", "validate", "the rule checks nothing since Kyverno 1.19", "remove the rule")


def _names_no_operations(rule: Rule) -> bool:
    return any(not block.resources.operations for block in rule.match.blocks)


def _judged_again(reason: str) -> Refusal:
    """Return code, text and advice for a rule whose old object Kyverno would judge by another request."""
    return (
        "existing-violations",
        f"the rule enforces, excuses updates of what failed before, and {reason}",
        "set allowExistingViolations: false, which the policy in CEL then also does",
    )


def _without_request(names: Names) -> Names:
    """Return the names for the object before an update, which Kyverno judges as if it were created."""
    paths = (("request", "operation"), ("request", "oldObject"))
    refused: dict[tuple[str, ...], Refusal] = {path: _judged_again(f"reads {'.'.join(path)}") for path in paths}
    errors = _judged_again("can be an error for an element of the old object")
    return replace(names, refused={**names.refused, **refused}, errors=errors)


def _without_braces(text: str) -> str:
    """Return a message that nothing fills in, with the names of its variables.

    >>> _without_braces("no {{ request.name }} here")
    'no request.name here'
    """
    return regex(r"\{\{\s*(.*?)\s*\}\}").sub(lambda found: found[1], text)


class _Converter:
    def __init__(self, policy: ClusterPolicy, rule: Rule, validate: Validate, frame: Frame, context: Context) -> None:
        self.policy, self.rule, self.validate, self.frame, self.context = policy, rule, validate, frame, context
        self.notes: list[Note] = [*frame.scope.notes]
        self.variables: list[tuple[str, str]] = []
        self.context_variables: list[tuple[str, str]] | None = None
        self.known: dict[tuple[str, str, bool], Names] = {}
        self.all_names: list[Names] = []
        self.titles: list[str] = []
        self.containers: list[tuple[str, str]] = []
        self.conditions: list[Condition] = []
        self.can_fail = False

    def convert(self) -> RulePart:
        if self.validate.cel is not None:
            return self._written_in_cel(self.validate.cel)
        if self.rule.report_properties:
            self.notes.append(Note("report-properties", "reportProperties", "report properties are not carried over"))
        guard = self._preconditions()
        parts = self._parts(self.frame.roots)
        excuse = self._excuse()
        validations = []
        message = self._message()
        self.variables[:0] = self.containers
        for title, part in self._titled(parts):
            test = part if guard is None else any_of([guard.not_(), part])
            if excuse is not None:
                # an error of the new object counts although the old one failed: || would forget it
                test = ternary(test, TRUE, excuse) if self.can_fail else any_of([test, excuse])
            shown = {"message": f"{message['message']} ({title})"} if title and "message" in message else message
            validations.append({"expression": test.as_condition().text, **shown})
        self.variables[:0] = self.context_variables or []
        self.notes += [note for names in self.all_names for note in names.notes]
        return self._part(tuple(validations))

    def _part(self, validations: tuple[JSONObject, ...], audits: tuple[JSONObject, ...] = ()) -> RulePart:
        texts = [
            *(str(value) for each in (*validations, *audits) for value in each.values()),
            *(expression for _, expression in self.variables),
        ]
        pods = [(each.name, each.expression) for each in self.frame.pod_variables(texts)]
        conditions = (*self.frame.scope.conditions, *self.conditions)
        return RulePart(
            self.frame, conditions, (*pods, *self.variables), validations, audits, tuple(dict.fromkeys(self.notes))
        )

    def _titled(self, parts: Sequence[Cel]) -> list[tuple[str, Cel]]:
        """Return one expression, or one for each part where together they are long; those of controls with titles."""
        if len(self.titles) == len(parts):
            return list(zip(self.titles, parts, strict=True))
        joined = all_of(parts)
        if len(joined.text) <= _LONG or len(parts) > 12:
            return [("", joined)]
        return [("", part) for part in parts if part.text != "true"]

    # --------------------------------------------------------------------------------------------------------- checks

    def _parts(self, roots: Roots, *, is_old: bool = False) -> list[Cel]:
        """Return the expressions that must all be true, for every group of kinds."""
        return self._by_kind(lambda root: self._check(root, is_old=is_old), roots)

    def _by_kind(self, convert: Callable[[Reference], Sequence[Cel]], roots: Roots) -> list[Cel]:
        """Return what holds for the objects of every group of kinds, once where it is the same for all."""
        found: dict[tuple[str, ...], tuple[list[Target], tuple[Cel, ...]]] = {}
        for targets, root in roots:
            parts = tuple(convert(root))
            entry = found.setdefault(tuple(each.text for each in parts), ([], parts))
            entry[0].extend(targets)
        if len(found) == 1:
            return list(next(iter(found.values()))[1])
        joined = []
        for group, parts in found.values():
            is_kind = one_of(_KIND, [each.kind for each in group])
            joined.append(any_of([is_kind.not_(), all_of(parts)]))
        return joined

    def _check(self, root: Reference, *, is_old: bool) -> Sequence[Cel]:
        validate = self.validate
        # the engine takes the first that is written
        if validate.pod_security is not None:
            return self._pod_security(root, is_old=is_old)
        if validate.deny is not None:
            return [self._denied(validate.deny.conditions, root, is_old=is_old).not_()]
        if validate.pattern is not None:
            self._refuse_template_fields(validate.pattern, "validate.pattern")
            return parts_of(validate.pattern, root, "validate.pattern", self.context)
        if validate.any_pattern is not None:
            if not isinstance(validate.any_pattern, list):
                raise UnconvertibleError("pattern", "validate.anyPattern", "anyPattern is no list", "mend the rule")
            for index, each in enumerate(validate.any_pattern):
                self._refuse_template_fields(each, f"validate.anyPattern[{index}]")
            return [any_holds(validate.any_pattern, root, "validate.anyPattern", self.context)]
        return self._foreach(root, is_old=is_old)

    def _refuse_template_fields(self, pattern: JSON, path: str) -> None:
        if not self.frame.has_pods or not isinstance(pattern, dict):
            return
        for key in pattern:
            if not any(key in (name, f"=({name})", f"({name})", f"<({name})") for name in ("spec", "metadata")):
                raise UnconvertibleError(
                    "autogen-field",
                    f"{path}.{key}",
                    "the copies for pod controllers look for this field in the template, which has none",
                    "match controllers in a rule of their own, or switch autogen off",
                )

    def _pod_security(self, root: Reference, *, is_old: bool) -> Sequence[Cel]:
        written: JSONObject = self.validate.raw["podSecurity"]
        if not is_old and len(self.frame.roots) == 1:
            self.containers = [("containers", all_containers(root).text)]
            variable = Cel("variables.containers", CelType.LIST)
            tests = pod_security_tests(written, root, "validate.podSecurity", containers=variable)
            self.titles = [each.title for each in tests]
        else:
            tests = pod_security_tests(written, root, "validate.podSecurity")
        return [each.passes for each in tests]

    def _denied(self, conditions: JSON, root: Reference, *, is_old: bool) -> Cel:
        names = self._names(root, is_old=is_old)
        found = conditions_test(conditions, names, "validate.deny.conditions", strict=self._may_excuse)
        self.can_fail |= found.fails
        return found.cel

    def _foreach(self, root: Reference, *, is_old: bool) -> Sequence[Cel]:
        entries = self.validate.raw.get("foreach") or []
        return [elements_pass(entries, self._names(root, is_old=is_old), "validate.foreach")]

    # --------------------------------------------------------------------------------------------------- around checks

    def _preconditions(self) -> Cel | None:
        """Add the preconditions to the match conditions; return them where they must be a guard."""
        for each in self.rule.cel_preconditions:
            self.conditions.append(Condition(each.name, Cel(each.expression, CelType.BOOL)))
        if self.rule.preconditions is None:
            return None
        found = all_of(self._by_kind(self._precondition, self.frame.roots))
        if found.text == "true":
            return None
        if "variables." in found.text:
            # match conditions cannot read variables
            self.variables.append(("applies", found.as_condition().text))
            return Cel("variables.applies", CelType.BOOL)
        self.conditions.append(Condition("preconditions", found.as_condition()))
        return None

    def _precondition(self, root: Reference, *, is_old: bool = False) -> Sequence[Cel]:
        found = conditions_test(self.rule.preconditions, self._names(root, is_old=is_old), "preconditions")
        if found.fails and "DELETE" not in self.frame.scope.operations and _names_no_operations(self.rule):
            text = (
                "the old rule is an error on every DELETE, whose request has no object; the policy is not for deletions"
            )
            self.notes.append(Note(DELETION_ERRORS, "preconditions", text))
        return [found.cel]

    def _names(self, root: Reference, *, is_old: bool = False) -> Names:
        """Return the names that expressions of the rule can read, entries of its context included."""
        key = (root.root, root.root_schema.definition, is_old)
        found = self.known.get(key)
        if found is not None:
            return found
        names = self._request_names(root, is_old=is_old)
        written = self.rule.raw.get("context") or []
        if written:
            names, made = variables_of(written, replace(names, home=home_of(self.policy)), "context")
            entries = [(each.name, each.expression.text) for each in made]
            if is_old and self.context_variables not in (None, entries):
                code, text, advice = _judged_again("its context reads the object")
                raise UnconvertibleError(code, "context", text, advice)
            if self.context_variables is not None and self.context_variables != entries:
                raise UnconvertibleError(
                    "context-kinds", "context", "the entries differ by the kind of the object", "split the rule by kind"
                )
            self.context_variables = entries
        self.known[key] = names
        self.all_names.append(names)
        return names

    def _request_names(self, root: Reference, *, is_old: bool) -> Names:
        frame = self.frame
        if not frame.has_pods:
            target = root.root_schema
            names = names_of(root, None if is_old else Reference("oldObject", target))
            return _without_request(names) if is_old else names
        whole = Reference("oldObject" if is_old else frame.root, frame.book.any_object())
        old_pod = Reference("variables.oldPod", root.root_schema)
        guard = Cel("oldObject != null", CelType.BOOL, Level.RELATION)
        parts = ("spec", "metadata")
        extra: dict[tuple[str, ...], Value] = {
            ("request", "object", part): of_reference(root.field(part)) for part in parts
        }
        if not is_old:
            for part in parts:
                extra["request", "oldObject", part] = of_reference(old_pod.field(part), guard)
        names = names_of(whole, None if is_old else Reference("oldObject", frame.book.any_object()), extra)
        return _without_request(names) if is_old else names

    @property
    def _may_excuse(self) -> bool:
        """Whether an update can be excused; an error, of the old object or the new one, then is no failure."""
        validate, scope = self.validate, self.frame.scope
        action = validate.failure_action or self.policy.spec.failure_action
        excuses = excuses_updates(self.rule, background=self.policy.spec.background)
        if not excuses or action is not FailureAction.ENFORCE:
            return False
        return {"CREATE", "UPDATE"} <= {*scope.operations} and not scope.reads_users

    def _excuse(self) -> Cel | None:
        """Return the test that an update is excused because the old object failed too, None where it never is."""
        if not self._may_excuse:
            return None
        old = self._parts(self.frame.old_roots, is_old=True)
        applied = self._by_kind(lambda root: self._precondition(root, is_old=True), self.frame.old_roots)
        tests = [*self._old_conditions(), *applied, all_of(old).not_()]
        if misses_scale(self.rule):  # requests to scale, which the rule never saw, may have made the violation
            tests.append(Cel("object.?spec.?replicas == oldObject.?spec.?replicas", CelType.BOOL))
        failed = all_of([compare(Cel("request.operation"), "==", literal("UPDATE")), *tests])
        self.variables.append(("failedBefore", failed.as_condition().text))
        return Cel("variables.failedBefore", CelType.BOOL)

    def _old_conditions(self) -> Sequence[Cel]:
        """Return the conditions of match and exclude as they are for the object before the update."""
        if self.frame.has_pods:
            return ()  # there are no copies for controllers where conditions look at more than the namespace
        scope = convert_scope(
            self.rule.match,
            self.rule.exclude,
            self.frame.book.schemas.kinds,
            allowed=ADMITTED,
            pod_subresources=pod_subresources_of(self.rule),
            root="oldObject",
        )
        if any("request.operation" in each.expression.text for each in scope.conditions):
            code, text, advice = _judged_again("matches some kinds in certain operations only")
            raise UnconvertibleError(code, "match", text, advice)
        return [each.expression for each in scope.conditions if "oldObject" in each.expression.text]

    def _message(self) -> JSONObject:
        text = self.validate.message.strip()
        if not text:
            return {"message": f"rule {self.rule.name} failed"}
        if "{{" not in text:
            return {"message": text}
        try:
            found = {self._message_expression(text, root).text for _, root in self.frame.roots}
        except UnconvertibleError as error:
            self.notes.append(Note("message", "validate.message", f"variables stay as they are: {error.message}"))
            return {"message": _without_braces(text)}
        if len(found) != 1:
            self.notes.append(Note("message", "validate.message", "variables differ by kind and stay as they are"))
            return {"message": _without_braces(text)}
        return {"messageExpression": found.pop()}

    def _message_expression(self, text: str, root: Reference) -> Cel:
        return as_text(translate(text, self._names(root), "validate.message"), "validate.message")

    # ------------------------------------------------------------------------------------------------------------- CEL

    def _written_in_cel(self, cel: WrittenCel) -> RulePart:
        """Take over `validate.cel`; copies for controllers replace the same texts as autogen does."""
        self.frame = replace(self.frame, subject="object")
        if cel.param_kind is not None or cel.param_ref is not None:
            raise UnconvertibleError(
                "params",
                "validate.cel.paramKind",
                "a ValidatingPolicy has no parameters",
                "read the object with resource.Get, or write a ValidatingAdmissionPolicy",
            )
        if self.policy.spec.failure_policy is FailurePolicy.IGNORE:
            raise UnconvertibleError(
                "ignored-errors",
                "validate.cel",
                "an expression that fails refuses the request here, and is ignored in a ValidatingPolicy",
                "write failurePolicy: Fail, or guard the expressions with has()",
            )
        self._preconditions()
        rewrite: Callable[[str], str] = self._rewrite if self.frame.has_pods else str
        self.variables += [(each.name, rewrite(each.expression)) for each in cel.variables]
        fallback = self._message()
        validations = []
        for each in cel.expressions:
            entry: JSONObject = {"expression": rewrite(each.expression)}
            if each.message_expression:
                entry["messageExpression"] = rewrite(each.message_expression)
            if each.message or not each.message_expression:
                entry["message"] = each.message or fallback["message"]
            if each.reason:
                entry["reason"] = each.reason
            validations.append(entry)
        audits = tuple(
            {"key": each.key, "valueExpression": rewrite(each.value_expression)} for each in cel.audit_annotations
        )
        return self._part(tuple(validations), audits)

    def _rewrite(self, expression: str) -> str:
        for name, pod in (("oldObject", "oldPod"), ("object", "pod")):
            for part in ("spec", "metadata"):
                expression = expression.replace(f"{name}.{part}", f"variables.{pod}.{part}")
        return expression
