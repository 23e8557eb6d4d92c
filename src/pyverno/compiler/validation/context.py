"""Checks of context entries: names, required fields, and that queries parse.

This module must not load anything.
(Kyverno: pkg/validation/policy)
"""

from __future__ import annotations

from collections.abc import Iterator

from pyverno.compiler.validation.findings import Findings
from pyverno.errors import ExpressionSyntaxError, ValueSyntaxError
from pyverno.kube.yaml.fieldpath import Path
from pyverno.lang.template import has_variables
from pyverno.policy.context import ApiCall, ConfigMap, ContextEntry, GlobalReference, ImageRegistry, Variable
from pyverno.policy.generate import Generate
from pyverno.policy.mutate import Mutate, MutateForeach
from pyverno.policy.rule import Rule
from pyverno.policy.validate import Validate, ValidateForeach

__all__ = ["check_confined", "check_context", "check_query", "context_entries"]

_RESERVED = ("images", "request", "serviceAccountName", "serviceAccountNamespace", "element", "elementIndex")


def context_entries(rule: Rule) -> Iterator[ContextEntry]:
    """Yield every context entry of a rule: its own, those of foreach blocks and those of targets."""
    yield from rule.context
    match rule.action:
        case Validate() as validate:
            yield from _foreach_entries(validate.foreach)
        case Mutate() as mutate:
            yield from _foreach_entries(mutate.foreach)
            for target in mutate.targets or ():
                yield from target.context
        case Generate() as generate:
            for each in generate.foreach or ():
                yield from each.context


def _foreach_entries(blocks: tuple[ValidateForeach, ...] | tuple[MutateForeach, ...]) -> Iterator[ContextEntry]:
    for block in blocks:
        yield from block.context
        yield from _foreach_entries(block.foreach)


def check_context(rule: Rule, findings: Findings, *, namespaced: bool = False) -> None:
    """Check all context entries of one rule; `namespaced` tells whether its policy belongs to a namespace."""
    if rule.context and isinstance(rule.action, Validate) and rule.action.cel is not None:
        text = "context variables are not supported for CEL expressions in validate rules"
        findings.error("context-cel", (*rule.path, "context"), text)
    for entry in context_entries(rule):
        _check_name(entry, findings)
        _check_entry(entry, findings)
        if namespaced:
            check_confined(entry, findings)


def check_confined(entry: ContextEntry, findings: Findings) -> None:
    """Report an entry that no policy of a namespace may have."""
    if isinstance(entry, GlobalReference):
        findings.error("namespaced-global-context", entry.path, "globalReference is not allowed in namespaced policies")


def _check_name(entry: ContextEntry, findings: Findings) -> None:
    if not entry.name:
        findings.error("context-name", entry.path, "a name is required for context entries")
    for reserved in _RESERVED:
        if entry.name == reserved or entry.name.startswith(f"{reserved}."):
            text = f"entry name {entry.name} is invalid as it conflicts with a pre-defined variable {reserved}"
            findings.error("context-name", (*entry.path, "name"), text)


def _check_entry(entry: ContextEntry, findings: Findings) -> None:
    match entry:
        case Variable():
            _check_variable(entry, findings)
        case ConfigMap():
            if not entry.config_map:
                findings.error("context-entry", entry.path, "a name is required for configMap context entry")
            if not entry.namespace:
                findings.error("context-entry", entry.path, "a namespace is required for configMap context entry")
        case ApiCall():
            if entry.url_path and entry.service is not None:
                findings.error("context-entry", entry.path, "a URLPath cannot be used for service API calls")
            check_query(entry.jmes_path, (*entry.path, "apiCall", "jmesPath"), findings)
        case GlobalReference():
            if not entry.reference:
                findings.error("context-entry", entry.path, "a name is required for globalReference context entry")
            check_query(entry.jmes_path, (*entry.path, "globalReference", "jmesPath"), findings)
        case ImageRegistry():
            if not entry.reference:
                findings.error("context-entry", entry.path, "a ref is required for imageRegistry context entry")
            _check_image(entry.reference, (*entry.path, "imageRegistry", "reference"), findings)
            check_query(entry.jmes_path, (*entry.path, "imageRegistry", "jmesPath"), findings)


def _check_image(text: str, path: Path, findings: Findings) -> None:
    if not text or has_variables(text):
        return
    from pyverno.kube.imageref.reference import parse_reference

    try:
        parse_reference(text)
    except ValueSyntaxError as error:
        findings.error("context-entry", path, f"bad image: {text}: {error.message.rpartition(': ')[2]}")


def _check_variable(entry: Variable, findings: Findings) -> None:
    check_query(entry.jmes_path, (*entry.path, "variable", "jmesPath"), findings)
    if entry.value is None and not entry.jmes_path:
        text = "a variable must define a value or a jmesPath expression"
        findings.error("context-entry", entry.path, text)
    if entry.default is not None and not entry.jmes_path:
        text = "a variable must define a default value only when a jmesPath expression is defined"
        findings.error("context-entry", entry.path, text)


def check_query(text: str, path: Path, findings: Findings) -> None:
    """Check that a JMESPath query parses; a query with variables is only known at run time."""
    if not text or has_variables(text):
        return
    # imported here, because many policies have no queries
    from pyverno.lang.jmespath import compile_expression

    try:
        compile_expression(text)
    except ExpressionSyntaxError as error:
        findings.error("jmespath", path, f"failed to parse JMESPath {text}: {error.message}")
