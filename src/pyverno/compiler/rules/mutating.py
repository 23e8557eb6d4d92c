"""Lowering of `mutate` blocks to actions."""

from __future__ import annotations

from functools import partial

from pyverno.compiler.parser import Parser, lower_preconditions, place_of
from pyverno.compiler.rules.context import data_names, lower_context
from pyverno.compiler.rules.elements import lower_elements
from pyverno.engine.actions.mutate import (
    Change,
    ForeachChange,
    MutateElements,
    MutateExisting,
    MutateRule,
    PatchChange,
    TargetName,
    Targets,
)
from pyverno.engine.actions.patches import JsonPatch, Patch, StrategicMergePatch
from pyverno.engine.rule import Action
from pyverno.engine.rules.conditions import reads_data
from pyverno.errors import ExpressionError, ExpressionSyntaxError
from pyverno.kube.json import JSON
from pyverno.kube.wildcard import count_wildcards
from pyverno.kube.yaml.fieldpath import Path
from pyverno.lang.pattern.anchors import refuse_directive, refuse_directives
from pyverno.lang.pattern.mutate import compile_overlay
from pyverno.lang.template import DataMark, Surroundings, Template, literal_parts
from pyverno.lang.template.patchtext import PatchText, compile_patch_text
from pyverno.policy.mutate import ForeachOrder, Mutate, MutateForeach, Target
from pyverno.policy.rule import Rule
from pyverno.value import replace

__all__ = ["lower_mutate"]


def lower_mutate(rule: Rule, mutate: Mutate, parser: Parser) -> Action:
    """Compile what a mutate rule changes, and which objects."""
    change: Change
    patch = _patch(mutate, mutate.path, rule.raw, parser)
    if mutate.foreach:
        entries = [_entry(each, parser, 0) for each in mutate.foreach]
        change = ForeachChange(tuple(entry for entry in entries if entry is not None))
    elif patch is not None:
        change = PatchChange(patch)
    else:
        # a patch that cannot be read was reported where it is written
        if mutate.patch_strategic_merge is None and not mutate.patches_json6902:
            parser.report("empty mutate rule", mutate.path, code="mutate")
        change = ForeachChange(())
    if not mutate.targets:
        return MutateRule(change)
    return MutateExisting(tuple(_targets(target, parser) for target in mutate.targets), change)


def _patch(written: Mutate | MutateForeach, path: Path, within: JSON, parser: Parser) -> Patch | None:
    """Compile the patch; a strategic merge wins where both are written.

    References look at what the patch is `within`: the rule or the entry of foreach.
    """
    if written.patch_strategic_merge is not None:
        at = (*path, "patchStrategicMerge")
        mark = DataMark(
            partial(reads_data, data=parser.data), refuse_directives, lambda text, _pieces: text, refuse_directive
        )
        template = parser.template(written.patch_strategic_merge, at, Surroundings(within, place_of(at)), mark)
        if not template.is_static:
            return StrategicMergePatch(template)
        try:
            return StrategicMergePatch(template, compile_overlay(template.document))
        except ExpressionError as error:
            parser.report(error.message, at, code="patch")
            return None
    if written.patches_json6902:
        operations = _operations(written.patches_json6902, (*path, "patchesJson6902"), within, parser)
        return None if operations is None else JsonPatch(operations)
    return None


def _operations(text: str, path: Path, within: JSON, parser: Parser) -> PatchText | None:
    try:
        operations = compile_patch_text(text, place_of(path), within)
    except ExpressionError as error:
        offset = error.offset if isinstance(error, ExpressionSyntaxError) else 0
        parser.report(error.message, path, code="patch", offset=parser.offset_in(text, path, offset))
        return None
    positions = operations.positions() if operations.template.errors else None
    for problem in operations.template.errors:
        at = None
        if positions is not None and problem.offset is not None:
            at = positions.find(problem.steps, problem.offset)
        parser.report_problem(replace(problem, text=text, steps=(), offset=at, in_key=False), path)
    return operations


def _entry(each: MutateForeach, parser: Parser, depth: int) -> MutateElements | None:
    elements = lower_elements(each, parser, depth=depth)
    if elements is None:
        return None
    nested = [_entry(inner, parser, depth + 1) for inner in each.foreach]
    merges = each.patch_strategic_merge is not None
    return MutateElements(
        elements,
        _patch(each, each.path, each.raw, parser),
        tuple(entry for entry in nested if entry is not None),
        reverse=each.order is ForeachOrder.DESCENDING or (each.order is None and merges),
    )


def _targets(target: Target, parser: Parser) -> Targets:
    path = target.path
    parser.data = data_names(target.context, parser.data)

    def template(text: str, key: str) -> Template:
        return parser.template(text, (*path, key), Surroundings(target.raw, f"/{key}"))

    def name(text: str, key: str) -> TargetName:
        compiled = template(text, key)
        reads = any(reads_data(each.text, parser.data) for each in compiled.variables if not each.is_inner)
        return TargetName(compiled, sum(map(count_wildcards, literal_parts(text))) if reads else None)

    return Targets(
        api_version=template(target.api_version, "apiVersion"),
        kind=template(target.kind, "kind"),
        namespace=name(target.namespace, "namespace"),
        name=name(target.name, "name"),
        selector=None if target.selector is None else parser.template(target.selector, (*path, "selector")),
        bindings=lower_context(target.context, parser),
        preconditions=lower_preconditions(target.preconditions, parser, (*path, "preconditions")),
    )
