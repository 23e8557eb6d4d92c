"""Checks of variables: which may be used in a rule at all, and which not in background mode.

Nothing is evaluated: a variable is judged by its text, with `null` in place of variables inside it. This module must
not know what variables hold.
(Kyverno: pkg/validation/policy, pkg/engine/context/mock_context.go)
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from pyverno.compiler.validation.context import context_entries
from pyverno.compiler.validation.findings import Findings
from pyverno.errors import PyvernoError
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.wildcard import has_wildcard
from pyverno.kube.wildcard import match as wildcard_match
from pyverno.kube.yaml.documents import find_value
from pyverno.kube.yaml.fieldpath import Path, Place
from pyverno.lang.template import Variable, compile_template
from pyverno.lang.template.patchtext import compile_patch_text
from pyverno.lang.template.syntax import VARIABLE
from pyverno.lazyregex import regex
from pyverno.policy.clusterpolicy import ClusterPolicy
from pyverno.policy.context import ConfigMap
from pyverno.policy.match import MatchBlocks
from pyverno.policy.mutate import Mutate
from pyverno.policy.rule import Rule, VerifyImages
from pyverno.spelling import nearest
from pyverno.value import dataclass

if TYPE_CHECKING:
    from pyverno.lang.template.positions import VariablePositions

__all__ = ["check_variables"]

_BACKGROUND_MODE = (
    "only select variables are allowed in background mode. "
    "Set spec.background=false to disable background mode for this policy rule: "
)
_UPDATE_MODE = (
    "only select variables are allowed in on policy update. "
    "Set spec.mutateExistingOnPolicyUpdate=false to disable update policy mode for this policy rule: "
)
_USER_ERROR = "background-variable"
_MOST_WILDCARDS = 20
_MOST_HINTS = 20
"""How many errors say what was meant: a search of all names."""
_INVALID = "policy contains invalid variables: "

_ADMISSION = r"serviceAccountName|serviceAccountNamespace|"
_ANYWHERE = r"element|elementIndex|@|images|"
_CALL = r"([a-z_0-9]+\()[^{}]"
# linear: a name is tried from its start only, and as a whole
_LINEAR_CALL = r"(?<![a-z_0-9])[a-z_0-9]++\([^{}]"
_ALLOWED: dict[tuple[bool, bool], str] = {
    (False, False): rf"request|{_ADMISSION}{_ANYWHERE}image|{_CALL}",
    (True, False): rf"request\.|{_ANYWHERE}images\.|image\.|{_CALL}",
    (False, True): rf"request\.|{_ADMISSION}{_ANYWHERE}images\.|image\.|target\.|{_CALL}",
    (True, True): rf"request\.|{_ANYWHERE}images\.|image\.|target\.|{_CALL}",
}
"""The required content of a variable's text, by (background, may see `target`)."""

_COMPILED = {key: regex(text.replace(_CALL, _LINEAR_CALL)) for key, text in _ALLOWED.items()}
_NAME = regex(r"[A-Za-z_][\w-]*+")
_OF_ADMISSION = ("serviceAccountName", "serviceAccountNamespace")
_OF_FIELDS = {"request": "request.object", "image": "image.name", "images": "images.containers"}
_NAMES = ("request", "element", "elementIndex", "images", "image", *_OF_ADMISSION)
_PLAIN_VARIABLE = regex(r"\{\{[^{}]*+\}\}")
_USER = regex(
    r"[^.](serviceAccountName|serviceAccountNamespace|request.userInfo|request.roles|request.clusterRoles)\b", re.ASCII
)


@dataclass(frozen=True, slots=True)
class _Entries:
    """The context entries of a rule: the texts that variables of them are, begin with, or match by wildcards."""

    patterns: tuple[str, ...]
    whole: frozenset[str]
    beginnings: frozenset[str]
    lengths: tuple[int, ...]
    wildcards: tuple[str, ...]

    @classmethod
    def of(cls, rule: Rule) -> _Entries:
        """Return the index of the entries: a rule may have as many variables as entries."""
        patterns = tuple(dict.fromkeys(_context_patterns(rule)))
        plain = [pattern for pattern in patterns if not has_wildcard(pattern.removesuffix("*"))]
        beginnings = frozenset(pattern[:-1] for pattern in plain if pattern.endswith("*"))
        lengths = tuple({len(each) for each in beginnings})
        return cls(patterns, frozenset(plain), beginnings, lengths, tuple({*patterns}.difference(plain)))

    def __contains__(self, text: str) -> bool:
        if text in self.whole or any(text[:length] in self.beginnings for length in self.lengths):
            return True
        # so many names with wildcards have no order that a search could use: what they mean, a review shows
        return len(self.wildcards) > _MOST_WILDCARDS or any(wildcard_match(each, text) for each in self.wildcards)


@dataclass(frozen=True, slots=True)
class _Allowed:
    """The variables that a rule may use."""

    background: bool
    target: bool
    entries: _Entries

    def accepts(self, text: str) -> bool:
        unquoted = text.replace('"', "")
        return _COMPILED[self.background, self.target].search(unquoted) is not None or unquoted in self.entries

    def refusal(self, text: str, *, is_hinted: bool) -> str:
        """Report a refused variable, with what was probably meant."""
        unquoted = text.replace('"', "")
        name = _name_of(unquoted)
        if name in _OF_ADMISSION:
            return f"variable {unquoted} is not defined in background mode (`spec.background: false` ends it)"
        hint = f": {self._hint(name, unquoted[len(name) :])}" if is_hinted else ""
        return f"variable {unquoted} is not defined{hint}"

    def _hint(self, name: str, rest: str) -> str:
        entries = {pattern.removesuffix("*").partition(".")[0]: pattern for pattern in self.entries.patterns}
        if name in entries:  # of a ConfigMap
            return f"expected `{name}.data` or `{name}.metadata`"
        if name == "target":
            return "only rules with `mutate.targets` have a `target`"
        if name in _OF_FIELDS:
            return f"expected a field of it, such as `{_OF_FIELDS[name]}`"
        near = nearest(name, [*entries, *_NAMES])
        return f"did you mean `{near}{rest}`?" if near else f"no context entry is named `{name}`"


def _name_of(text: str) -> str:
    """Return the name that a variable begins with."""
    found = _NAME.match(text)
    return found[0] if found else text


def check_variables(policy: ClusterPolicy, rules: tuple[Rule, ...], findings: Findings) -> None:
    """Check the variables of all rules of a policy, copies by autogen included."""
    background = policy.spec.background
    if background:
        _check_user_variables(policy, rules, findings, _BACKGROUND_MODE)
    _check_rules(rules, findings, background=background, prefix=_INVALID)
    if any(_runs_on_update(policy, rule) for rule in rules) and _has_variables(policy.raw):
        _check_user_variables(policy, rules, findings, _UPDATE_MODE)
        if not background:
            _check_rules(rules, findings, background=True, prefix=f"update event, {_INVALID}")


def _check_rules(rules: tuple[Rule, ...], findings: Findings, *, background: bool, prefix: str) -> None:
    """Check rules; an error of a written rule is not repeated for its copies."""
    faulty: set[Path] = set()
    for rule in rules:
        before = len(findings.errors)
        if rule.path not in faulty:
            _check_rule(rule, findings, background=background, prefix=prefix)
        if len(findings.errors) > before:
            faulty.add(rule.path)


def _runs_on_update(policy: ClusterPolicy, rule: Rule) -> bool:
    if not isinstance(rule.action, Mutate):
        return False
    own = rule.action.mutate_existing_on_policy_update
    return policy.spec.mutate_existing_on_policy_update if own is None else own


def _has_variables(raw: JSONObject) -> bool:
    return any(VARIABLE.search(text) is not None for text, _ in _texts(raw, ()))


def _texts(value: JSON, path: Path) -> Iterator[tuple[str, Path]]:
    """Yield every string and key of a document with its path; does not recurse."""
    pending: list[tuple[JSON, Path]] = [(value, path)]
    while pending:
        current, place = pending.pop()
        match current:
            case str():
                yield current, place
            case dict():
                for key, member in current.items():
                    yield key, (*place, key)
                    pending.append((member, (*place, key)))
            case list():
                pending.extend((each, (*place, index)) for index, each in enumerate(current))


def _check_user_variables(policy: ClusterPolicy, rules: tuple[Rule, ...], findings: Findings, prefix: str) -> None:
    for rule in rules:
        # The number is that of the written rule, so that its autogen copies repeat the same message.
        for name, section in (("match", rule.match), ("exclude", rule.exclude)):
            if section is not None:
                _check_user_match(f"spec/rules[{rule.path[-1]}]/{name}", section, findings, prefix)
    if any(isinstance(rule.action, Mutate) and rule.action.targets is not None for rule in policy.spec.rules):
        return
    written = {key: value for key, value in policy.raw.items() if key in ("metadata", "spec")}
    for text, path in _texts(written, ()):
        if "last-applied-configuration" in path[-1:]:
            continue
        for found in VARIABLE.finditer(text):
            if _USER.search(found.group(2)):
                findings.error(_USER_ERROR, path, f"{prefix}variable {found.group(2)} is not allowed")


def _check_user_match(place: str, section: MatchBlocks, findings: Findings, prefix: str) -> None:
    forms = (("", (section.flat,) if section.flat is not None else ()), ("any", section.any), ("all", section.all))
    for form, blocks in forms:
        for index, block in enumerate(blocks):
            user = block.user_info
            fields = (("roles", user.roles), ("clusterRoles", user.cluster_roles), ("subjects", user.subjects))
            field = next((name for name, values in fields if values), None)
            if field is not None:
                where = f"{place}/{form}[{index}]/{field}" if form else f"{place}/{field}"
                text = f"{prefix}invalid variable used at path: {where} "
                findings.error("background-user-info", (*block.path, field), text)


def _check_rule(rule: Rule, findings: Findings, *, background: bool, prefix: str) -> None:
    _check_forbidden_sections(rule, findings, prefix)
    entries = _Entries.of(rule)
    mutate = rule.action if isinstance(rule.action, Mutate) else None
    has_targets = mutate is not None and mutate.targets is not None
    if mutate is not None:
        allowed = _Allowed(background, False, entries)
        for index, target in enumerate(mutate.targets or ()):
            named = {key: target.raw.get(key) for key in ("apiVersion", "kind", "namespace", "name", "uid")}
            seen = {
                "context": rule.raw.get("context"),
                "preconditions": rule.raw.get("preconditions"),
                "mutate": {"targets": [named]},
            }
            _check_document(
                seen,
                rule.path,
                findings,
                allowed,
                f"{prefix}invalid variables defined at mutate.targets[{index}]: ",
                target=index,
            )
    allowed = _Allowed(background, has_targets, entries)
    failed = f"{prefix}variable substitution failed for rule {rule.name}: "
    _check_document(_without_attestation_conditions(rule.raw), rule.path, findings, allowed, failed)


def _without_attestation_conditions(raw: JSONObject) -> JSONObject:
    images = raw.get("verifyImages")
    if not images:
        return raw
    trimmed = [
        {
            **image,
            "attestations": [
                {key: value for key, value in attestation.items() if key != "conditions"}
                for attestation in image.get("attestations") or ()
            ],
        }
        for image in images
    ]
    return {**raw, "verifyImages": trimmed}


def _check_document(
    document: JSONObject, path: Path, findings: Findings, allowed: _Allowed, prefix: str, *, target: int = 0
) -> None:
    """Check the variables of a part of a rule; `target` is the index of its only target in the rule."""
    template = compile_template(document)
    texts = _Texts(template.document)
    is_reported = _USER_ERROR in findings.codes
    for error in template.errors:
        place = Place((*path, *_in_rule(error.steps, target)), error.text, error.offset, error.in_key)
        findings.error("variable", path, f"{prefix}{error.message}", at=place if error.offset is not None else None)
    refusals: dict[str, str] = {}
    for variable in template.variables:
        text = _without_inner(variable.text)
        if variable.expression is not None and text != "@" and not allowed.accepts(text):
            if is_reported and _name_of(text) in _OF_ADMISSION:
                continue  # the checks of background mode have found it
            if text not in refusals:
                refusals[text] = allowed.refusal(text, is_hinted=len(findings.errors) < _MOST_HINTS)
            at = partial(_place, texts, variable, path, target)
            findings.error("variable", path, f"{prefix}{refusals[text]}", at=at)


class _Texts:
    """The texts of a document by the paths of variables in them: their steps, and the positions of all variables."""

    def __init__(self, document: JSON) -> None:
        self._document = document
        self._known: dict[str, tuple[Path, str, VariablePositions] | None] = {}

    def find(self, path: str) -> tuple[Path, str, VariablePositions] | None:
        if path not in self._known:
            from pyverno.lang.template.positions import VariablePositions, find_steps  # only for what is reported

            steps = find_steps(self._document, path)
            text = find_value(self._document, steps)
            self._known[path] = (steps, text, VariablePositions(text)) if isinstance(text, str) else None
        return self._known[path]


def _place(texts: _Texts, variable: Variable, path: Path, target: int) -> Place | None:
    """Return where a variable is; None for one in the name of a field."""
    found = None if variable.in_key else texts.find(variable.path)
    if found is None:
        return None
    steps, text, positions = found
    return Place((*path, *_in_rule(steps, target)), text, positions.find(variable.number))


def _in_rule(steps: Path, target: int) -> Path:
    return (*steps[:2], target, *steps[3:]) if steps[:2] == ("mutate", "targets") else steps


def _without_inner(text: str) -> str:
    """Put `null` in place of the variables inside a variable, as a mock query yields it."""
    while "{{" in text:
        replaced = VARIABLE.sub(r"\1null", text)
        if replaced == text:
            break
        text = replaced
    return text.strip().removeprefix("-").strip()


def _context_patterns(rule: Rule) -> Iterator[str]:
    for entry in context_entries(rule):
        if isinstance(entry, ConfigMap):
            yield from (f"{entry.name}.{part}" for part in ("data", "metadata", "data.*", "metadata.*"))
        else:
            yield f"{entry.name}*"
    if isinstance(rule.action, VerifyImages) and any(image.check is not None for image in rule.action.entries):
        for image in rule.action.entries:
            yield from (f"{attestation.name}*" for attestation in image.attestations)


def _check_forbidden_sections(rule: Rule, findings: Findings, prefix: str) -> None:
    if isinstance(rule.action, Mutate) and _patch_paths_have_variables(rule.action.patches_json6902):
        text = f'{prefix}rule "{rule.name}" should not have variables in patchesJSON6902 path section'
        findings.error("variable", (*rule.action.path, "patchesJson6902"), text)
    for name, section in (("exclude", rule.exclude), ("match", rule.match)):
        if section is not None and any(_PLAIN_VARIABLE.search(text) for text, _ in _texts(section.raw, ())):
            text = f'{prefix}rule "{rule.name}" should not have variables in {name} section'
            findings.error("variable", section.path, text)
    if isinstance(rule.action, VerifyImages):
        for image in rule.action.entries:
            if any(VARIABLE.search(reference) for reference in image.image_references):
                text = f'{prefix}rule "{rule.name}" should not have variables in image reference section'
                findings.error("variable", (*image.path, "imageReferences"), text)


def _patch_paths_have_variables(text: str) -> bool:
    if not text:
        return False
    try:
        operations = compile_patch_text(text).template.document
    except PyvernoError:
        return False
    if not isinstance(operations, list):
        return False
    return any(VARIABLE.search(str(each.get("path", ""))) for each in operations if isinstance(each, dict))
