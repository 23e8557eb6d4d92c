"""Checks of validate and mutate blocks: exactly one form, known anchors, patches that parse, CEL fields.

This module must not run anything.
(Kyverno: pkg/policy/validate, pkg/policy/mutate, pkg/policy/common)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

from pyverno.compiler.validation.findings import Findings
from pyverno.errors import ExpressionSyntaxError, PyvernoError, SubstitutionError
from pyverno.kube.json import JSON
from pyverno.kube.yaml.fieldpath import Path, Place
from pyverno.lang.pattern.anchors import Modifier, parse_anchor
from pyverno.lang.template import split_variables
from pyverno.lang.template.patchtext import compile_patch_text
from pyverno.policy.mutate import Mutate, MutateForeach
from pyverno.policy.rule import Rule
from pyverno.policy.validate import Cel, PodSecurity, Validate, ValidateForeach
from pyverno.spelling import did_you_mean

__all__ = ["check_anchors", "check_elements", "check_mutate", "check_text_values", "check_validate"]

_PATCH_OPERATIONS = ("add", "remove", "replace", "move", "copy", "test")
_VALIDATE_ANCHORS = frozenset(Modifier) - {Modifier.ADD_IF_ABSENT}
_FORMS = "pattern, anyPattern, deny, foreach, cel"
_FOREACH_FORMS = "pattern, anyPattern, deny, or a nested foreach"
_TEXT_VALUES = 'labels and annotations supports only string values, "use double quotes around the non string values"'
_POD_SECURITY_VERSIONS = ("latest", *(f"v1.{minor}" for minor in range(19, 33)))
"""The values in Kyverno's definition of the kind."""
_ONE_PATCH = "only one of `patchStrategicMerge` or `patchesJson6902` is allowed"


def check_validate(rule: Rule, validate: Validate, findings: Findings) -> None:
    """Check a validate block."""
    _check_forms(validate, findings)
    if validate.pattern is not None:
        check_anchors(validate.pattern, (*validate.path, "pattern"), findings, _VALIDATE_ANCHORS)
    if validate.any_pattern is not None:
        _check_any_pattern(validate.any_pattern, (*validate.path, "anyPattern"), findings)
    for entry in validate.foreach:
        _check_foreach(entry, findings)
    if rule.cel_preconditions and validate.cel is None:
        findings.error("cel-preconditions", rule.path, "celPrecondition can only be used with validate.cel")
    if validate.cel is not None:
        for text in _cel_problems(validate.cel):
            findings.error("validate-cel", (*validate.path, "cel"), text)
    if validate.pod_security is not None:
        _check_pod_security(validate.pod_security, (*validate.path, "podSecurity"), findings)


def _check_forms(validate: Validate, findings: Findings) -> None:
    written = (
        validate.pattern is not None,
        validate.any_pattern is not None,
        validate.deny is not None,
        validate.raw.get("foreach") is not None,
        validate.pod_security is not None,
        validate.cel is not None,
        validate.manifests is not None and bool(validate.manifests.attestors),
    )
    # since Kyverno 1.19 `assert` does nothing: as the only form it is as good as none
    if not any(written):
        findings.error("validate-form", validate.path, f"one of {_FORMS} must be specified")
    if sum(written) > 1:
        findings.error("validate-form", validate.path, f"only one of {_FORMS} can be specified")


def _check_any_pattern(patterns: JSON, path: Path, findings: Findings) -> None:
    if not isinstance(patterns, list):
        findings.error("validate-form", path, "failed to deserialize anyPattern, expect array: found another type")
        return
    for index, pattern in enumerate(patterns):
        check_anchors(pattern, (*path, index), findings, _VALIDATE_ANCHORS)


def _check_foreach(entry: ValidateForeach, findings: Findings) -> None:
    if not entry.elements:
        findings.error("foreach", entry.path, "foreach.list is required")
    written = (
        entry.pattern is not None,
        entry.any_pattern is not None,
        entry.deny is not None,
        bool(entry.foreach),
    )
    if not any(written):
        findings.error("foreach", entry.path, f"one of {_FOREACH_FORMS} must be specified")
    if sum(written) > 1:
        findings.error("foreach", entry.path, f"only one of {_FOREACH_FORMS} can be specified")
    for nested in entry.foreach:
        _check_foreach(nested, findings)


def _cel_problems(cel: Cel) -> Iterator[str]:
    if any(not each.expression for each in cel.expressions):
        yield "cel.expressions.expression is required"
    if cel.param_kind is not None:
        for field in ("apiVersion", "kind"):
            if not cel.param_kind.get(field):
                yield f"cel.paramKind.{field} is required"
        if cel.param_ref is None:
            yield "cel.paramRef is required"
    if cel.param_ref is not None:
        if bool(cel.param_ref.get("name")) == (cel.param_ref.get("selector") is not None):
            yield "one of cel.paramRef.name or cel.paramRef.selector must be set"
        if cel.param_ref.get("parameterNotFoundAction") is None:
            yield "cel.paramRef.parameterNotFoundAction is required"
        if cel.param_kind is None:
            yield "cel.paramKind is required"
    for annotation in cel.audit_annotations:
        if not annotation.key:
            yield "cel.auditAnnotation.key is required"
        if not annotation.value_expression:
            yield "cel.auditAnnotation.valueExpression is required"


def _check_pod_security(block: PodSecurity, path: Path, findings: Findings) -> None:
    from pyverno.podsecurity.problems import exclude_problems

    if block.version and block.version not in _POD_SECURITY_VERSIONS:
        listed = ", ".join(f'"{each}"' for each in _POD_SECURITY_VERSIONS)
        text = f'Unsupported value: "{block.version}": supported values: {listed}'
        findings.error("pod-security", (*path, "version"), text)
    for index, exclude in enumerate(block.exclude):
        for problem in exclude_problems([exclude.raw], level=block.level):
            field = problem.path.rpartition(".")[2]
            findings.error("pod-security", (*path, "exclude", index, field), problem.text)


def check_anchors(pattern: JSON, path: Path, findings: Findings, supported: frozenset[Modifier]) -> None:
    """Report anchors that the block does not know, and existence anchors without a list; does not recurse."""
    pending: list[tuple[JSON, Path]] = [(pattern, path)]
    while pending:
        value, place = pending.pop()
        if isinstance(value, list):
            pending.extend((each, (*place, index)) for index, each in enumerate(value))
        if not isinstance(value, dict):
            continue
        for key, member in value.items():
            anchor = parse_anchor(key)
            if anchor is not None and anchor.modifier not in supported:
                findings.error("anchor", (*place, key), f"unsupported anchor {key}")
            elif anchor is not None and anchor.modifier is Modifier.EXISTENCE:
                if not isinstance(member, list):
                    findings.error("anchor", (*place, key), "existence anchor should have value of type list")
                elif not member:
                    findings.error("anchor", (*place, key), "existence anchor: should have at least one value")
            pending.append((member, (*place, key)))


def check_mutate(rule: Rule, mutate: Mutate, findings: Findings) -> None:
    """Check a mutate block."""
    has_merge, has_patch = mutate.patch_strategic_merge is not None, bool(mutate.patches_json6902)
    if mutate.foreach:
        if has_merge or has_patch:
            text = "only one of `foreach`, `patchStrategicMerge`, or `patchesJson6902` is allowed"
            findings.error("mutate-form", mutate.path, text)
        for entry in mutate.foreach:
            _check_mutate_foreach(entry, findings)
    elif has_merge and has_patch:
        findings.error("mutate-form", mutate.path, _ONE_PATCH)
    if rule.cel_preconditions:
        findings.error("cel-preconditions", rule.path, "celPrecondition can only be used with validate.cel")
    if has_patch:
        _check_json_patch(mutate.patches_json6902, (*mutate.path, "patchesJson6902"), findings)


def _check_mutate_foreach(entry: MutateForeach, findings: Findings) -> None:
    has_merge, has_patch = entry.patch_strategic_merge is not None, bool(entry.patches_json6902)
    if entry.foreach:
        if has_merge or has_patch or entry.raw.get("context") is not None or entry.preconditions is not None:
            findings.error("mutate-form", entry.path, "a nested foreach cannot contain other declarations")
        for nested in entry.foreach:
            _check_mutate_foreach(nested, findings)
    elif has_merge == has_patch:
        findings.error("mutate-form", entry.path, _ONE_PATCH)


def _check_json_patch(text: str, path: Path, findings: Findings) -> None:
    try:
        patch = compile_patch_text(text)
    except PyvernoError as error:
        offset = error.offset if isinstance(error, ExpressionSyntaxError) else 0
        findings.error("json-patch", path, error.message, at=Place(path, text, offset))
        return
    operations = patch.template.document

    positions = cache(patch.positions)

    def place(*steps: str | int) -> Callable[[], Place]:
        return lambda: Place(path, text, positions().find(steps))

    if not isinstance(operations, list):
        findings.error("json-patch", path, "a JSON patch is a list of operations", at=place())
        return
    for index, operation in enumerate(operations):
        if not isinstance(operation, dict):
            findings.error("json-patch", path, f"operation {index} of the JSON patch is not an object", at=place(index))
            continue
        kind, target = operation.get("op"), operation.get("path")
        if not isinstance(target, str) or not target.startswith("/"):
            findings.error(
                "json-patch", path, f"path must begin with a forward slash: {target}", at=place(index, "path")
            )
        if kind not in _PATCH_OPERATIONS:
            hint = did_you_mean(kind, _PATCH_OPERATIONS) if isinstance(kind, str) else ""
            findings.error("json-patch", path, f"unexpected kind: {kind}{hint}", at=place(index, "op"))
        elif kind in ("add", "replace", "test") and "value" not in operation:
            findings.error("json-patch", path, f"invalid value: operation {index} has no value", at=place(index))


def check_elements(rule: Rule, findings: Findings) -> None:
    """Report variables of foreach loops that are outside of any loop."""
    pending: list[tuple[JSON, Path]] = [(rule.raw, ())]
    while pending:
        value, place = pending.pop()
        match value:
            case str() if "{{" in value and "foreach" not in place[:-1]:
                _check_element(value, place, rule, findings)
            case dict():
                pending.extend((member, (*place, key)) for key, member in value.items())
            case list():
                pending.extend((each, (*place, index)) for index, each in enumerate(value))


def _check_element(text: str, place: Path, rule: Rule, findings: Findings) -> None:
    try:
        variables = split_variables(text)
    except SubstitutionError:  # reported with the other variables
        return
    for variable in variables:
        # COMPAT: every name that begins with "element" counts.
        if variable.startswith("element"):
            where = "/" + "/".join(str(step) for step in place)
            message = f"variable '{variable}' present outside of foreach at path {where}"
            findings.error("element", (*rule.path, *place), message)


def check_text_values(rule: Rule, findings: Findings) -> None:
    """Report labels and annotations of a pattern or patch that are not text."""
    for pattern in _patterns(rule):
        if not isinstance(pattern, dict):
            continue
        template = pattern.get("spec")
        for part in ("template", "metadata"):
            template = template.get(part) if isinstance(template, dict) else None
        for metadata in (pattern.get("metadata"), template):
            if isinstance(metadata, dict) and not all(
                _are_texts(metadata.get(key)) for key in ("labels", "annotations")
            ):
                findings.error("text-values", rule.action.path, _TEXT_VALUES)


def _patterns(rule: Rule) -> Iterator[JSON]:
    match rule.action:
        case Validate() as validate:
            yield validate.pattern
            yield from validate.any_pattern if isinstance(validate.any_pattern, list) else ()
            yield from (entry.pattern for entry in validate.foreach)
        case Mutate() as mutate:
            yield mutate.patch_strategic_merge
            yield from (entry.patch_strategic_merge for entry in mutate.foreach)


def _are_texts(value: JSON) -> bool:
    return not isinstance(value, dict) or all(isinstance(each, str) for each in value.values())
