"""Checks of the kinds that rules match: wildcard kinds, unknown kinds, missing kinds.

This module must not read a cluster; the kinds come in a table.
(Kyverno: pkg/validation/policy)
"""

from __future__ import annotations

from collections.abc import Iterator

from pyverno.compiler.validation.findings import Findings
from pyverno.errors import PyvernoError
from pyverno.kube.gvk import KindSelector, parse_kind_selector
from pyverno.kube.json import JSON
from pyverno.kube.kinds import KindTable
from pyverno.kube.wildcard import has_wildcard
from pyverno.lang.template.patchtext import compile_patch_text
from pyverno.lazyregex import go_regex
from pyverno.policy.generate import Generate
from pyverno.policy.match import ResourceFilter
from pyverno.policy.mutate import Mutate
from pyverno.policy.rule import Rule, VerifyImages
from pyverno.policy.validate import Validate

__all__ = ["check_kinds"]

_METADATA_ONLY = "policy can only deal with the metadata field of the resource if the rule does not match any kind"
_MANDATORY = (
    "at least one element must be specified in a kind block, "
    "the kind attribute is mandatory when working with the resources element"
)
_BACKGROUND = (
    "wildcard policy not allowed in background mode. "
    "Set spec.background=false to disable background mode for this policy rule "
)

_ADMISSION_VARIABLE = go_regex(r"\{\{\s*(request\.|serviceAccountName|serviceAccountNamespace)[^{}]*\}\}")


def check_kinds(rule: Rule, findings: Findings, *, background: bool, kinds: KindTable | None) -> None:
    """Check the kinds of one rule; without a table of existing kinds these checks are left out."""
    for section in (rule.match, rule.exclude):
        for block in section.blocks if section is not None else ():
            _check_wildcards(rule, block, findings, background=background)
            if kinds is not None and "*" not in block.resources.kinds:
                _check_known(rule, block, findings, background=background, kinds=kinds)
    match = rule.match
    blocks = match.any or match.all or (match.flat or ResourceFilter(path=match.path),)
    if any(not block.resources.kinds for block in blocks):
        text = _MANDATORY if _is_about_metadata(rule) else _METADATA_ONLY
        findings.error("match-kinds", rule.path, text)


def _check_wildcards(rule: Rule, block: ResourceFilter, findings: Findings, *, background: bool) -> None:
    kinds, path = block.resources.kinds, (*block.resources.path, "kinds")
    if "*" not in kinds:
        return
    if background:
        findings.error("wildcard-kind", path, _BACKGROUND)
    if len(kinds) > 1:
        findings.error("wildcard-kind", path, "wildcard policy can not deal with more than one kind")
    if isinstance(rule.action, Generate | VerifyImages) or (isinstance(rule.action, Validate) and rule.action.foreach):
        findings.error("wildcard-kind", path, "wildcard policy does not support rule type")
    if not _wildcard_is_about_metadata(rule):
        findings.error("wildcard-kind", path, _METADATA_ONLY)


def _check_known(rule: Rule, block: ResourceFilter, findings: Findings, *, background: bool, kinds: KindTable) -> None:
    for index, selector in enumerate(block.resources.kinds):
        found = set(_matched_subresources(parse_kind_selector(selector), kinds))
        if not found:
            findings.warn(
                "the kind defined in the all match resource is invalid: "
                f"unable to convert GVK to GVR for kinds {selector}, err: resource not found"
            )
        elif found != {""} and background and isinstance(rule.action, Validate):
            path = (*block.resources.path, "kinds", index)
            findings.error("background-subresource", path, f"background scan enabled with subresource {selector}")


def _matched_subresources(selector: KindSelector, kinds: KindTable) -> Iterator[str]:
    """Yield the names of the served subresources that a selector matches, "" for each resource itself."""
    for info in kinds if has_wildcard(selector.kind) else kinds.by_kind(selector.kind):
        yield from (name for name in ("", *info.subresources) if selector.matches(info.gvk, name))


def _wildcard_is_about_metadata(rule: Rule) -> bool:
    match rule.action:
        case Validate() as validate:
            deny = validate.deny.conditions if validate.deny is not None else None
            return _is_about_metadata(rule) and _keys_are_about_metadata(deny)
        case Mutate():
            return _is_about_metadata(rule)
        case _:
            return True


def _keys_are_about_metadata(conditions: JSON) -> bool:
    # COMPAT: only the legacy list of conditions is looked at.
    if not isinstance(conditions, list):
        return True
    keys = [each.get("key") for each in conditions if isinstance(each, dict)]
    return all(isinstance(key, str) and _key_is_about_metadata(key) for key in keys)


def _key_is_about_metadata(key: str) -> bool:
    if "request.object.metadata." in key:
        return True
    return _ADMISSION_VARIABLE.search(key) is not None and "request.object.spec" not in key


def _is_about_metadata(rule: Rule) -> bool:
    match rule.action:
        case Validate() as validate:
            patterns = validate.any_pattern if isinstance(validate.any_pattern, list) else []
            return all(_only_metadata(pattern) for pattern in (validate.pattern, *patterns))
        case Mutate() as mutate:
            return _only_metadata(mutate.patch_strategic_merge) and _patches_metadata(mutate.patches_json6902)
        case _:
            return True


def _only_metadata(pattern: JSON) -> bool:
    return not isinstance(pattern, dict) or all(key == "metadata" for key in pattern)


def _patches_metadata(text: str) -> bool:
    if not text:
        return True
    try:
        operations = compile_patch_text(text).template.document
    except PyvernoError:
        return True
    if not isinstance(operations, list):
        return True
    return all(str(each.get("path", "")).startswith("/metadata") for each in operations if isinstance(each, dict))
