"""Lowering of `pattern` and `anyPattern` to actions; imported by `validating` when a rule has one."""

from __future__ import annotations

from functools import partial

from pyverno.compiler.parser import Parser
from pyverno.engine.actions.pattern import AnyPatternCheck, PatternCheck
from pyverno.engine.rules.conditions import reads_data
from pyverno.errors import ExpressionError
from pyverno.kube.json import JSON
from pyverno.kube.yaml.fieldpath import Path
from pyverno.lang.pattern.literal import as_literal, as_literal_within
from pyverno.lang.pattern.validate import Pattern, compile_pattern
from pyverno.lang.template import DataMark, Template

__all__ = ["lower_any_pattern", "lower_pattern"]


def lower_pattern(rule: str, written: JSON, message: Template, path: Path, parser: Parser) -> PatternCheck:
    """Compile a pattern; what is wrong with it is reported."""
    template = parser.template(written, path, mark=_data_mark(parser))
    compiled = _patterns([template.document], template, parser, path, float_numbers=False)
    return PatternCheck(rule, template, message, compiled[0] if compiled else None)


def lower_any_pattern(
    rule: str, written: JSON, message: Template, path: Path, parser: Parser
) -> AnyPatternCheck | None:
    """Compile the alternatives; None when they are no list, which is reported."""
    template = parser.template(written, path, mark=_data_mark(parser))
    if not isinstance(written, list):
        parser.report("failed to deserialize anyPattern, expect array", path, code="pattern")
        return None
    return AnyPatternCheck(
        rule, template, message, _patterns(template.document, template, parser, path, float_numbers=True)
    )


def _data_mark(parser: Parser) -> DataMark:
    """Return what keeps text of the request from being read as a pattern; the policy's own text is one."""
    return DataMark(partial(reads_data, data=parser.data), as_literal, as_literal_within)


def _patterns(
    documents: list[JSON], template: Template, parser: Parser, path: Path, *, float_numbers: bool
) -> tuple[Pattern, ...] | None:
    """Compile patterns without variables; None when they have variables or do not compile (which is reported)."""
    if not template.is_static:
        return None
    try:
        return tuple(compile_pattern(document, float_numbers=float_numbers) for document in documents)
    except ExpressionError as error:
        parser.report(error.message, path, code="pattern")
        return None
