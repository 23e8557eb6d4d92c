"""The part of a document that decodes, so that a mistake in its structure does not hide all others.

A rule with a mistake gives way to one that is right, and a field that no policy has is left out. Only errors that these
changes cannot cause count. This module must never make a policy: what does not decode as a whole is never run.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyverno.errors import PolicyError
from pyverno.kube.json import JSON, deep_copy
from pyverno.kube.yaml.documents import Document
from pyverno.lazyregex import regex
from pyverno.value import dataclass, replace

__all__ = ["ReadablePart", "read_part"]

_RULE = regex(r"spec\.rules\[([0-9]+)\]")
_STEP = regex(r"\[([^\]]*)\]|([^.\[\]]+)")
_UNKNOWN = "unknown-field"


@dataclass(frozen=True, slots=True)
class ReadablePart:
    """A document that should decode, and the numbers of the rules that were replaced in it."""

    document: Document
    replaced: frozenset[int] = frozenset()

    def is_certain(self, error: PolicyError) -> bool:
        """Return whether an error of this part is one of the whole document: another rule has it, or none was bad."""
        found = _RULE.match(error.path)
        return not self.replaced if found is None else int(found[1]) not in self.replaced


def read_part(document: Document, errors: Sequence[PolicyError]) -> ReadablePart | None:
    """Return the part of a document without the places of these errors; None where no part is certain.

    >>> from pyverno.kube.yaml.documents import load_documents
    >>> [document] = load_documents("spec: {rules: [{name: a, mach: {}}, {name: b}], bakground: true}")
    >>> errors = [PolicyError("", path=path, code="unknown-field") for path in ("spec.rules[0].mach", "spec.bakground")]
    >>> part = read_part(document, errors)
    >>> part.replaced, part.document.value["spec"]["rules"][1:], "bakground" in part.document.value["spec"]
    (frozenset({0}), [{'name': 'b'}], False)
    """
    value = deep_copy(document.value)
    replaced: set[int] = set()
    for error in errors:
        found = _RULE.match(error.path)
        if found is not None:
            replaced.add(int(found[1]))
        elif error.code != _UNKNOWN or not _remove(value, error.path):
            return None
    if replaced:
        rules = value["spec"]["rules"]
        for number in replaced:
            rules[number] = _stand_in(rules[number], number)
    return ReadablePart(replace(document, value=value), frozenset(replaced))


def _remove(value: JSON, path: str) -> bool:
    """Remove the field at a path; return whether it was there."""
    *steps, last = [found[2] if found[1] is None else found[1] for found in _STEP.finditer(path)] or [""]
    try:
        for step in steps:
            value = value[int(step)] if isinstance(value, list) else value[step]
        del value[last]
    except (KeyError, IndexError, TypeError, ValueError):  # a path is a text: a key may look like a step of it
        return False
    return True


def _stand_in(rule: JSON, number: int) -> JSON:
    """Return a rule without mistakes, of the same name: two rules of one name are a mistake of the second."""
    name = rule.get("name") if isinstance(rule, dict) else None
    kinds = {"any": [{"resources": {"kinds": ["ConfigMap"]}}]}
    check = {"message": "-", "pattern": {"kind": "?*"}}
    return {
        "name": name if isinstance(name, str) and name else f"unreadable-{number}",
        "match": kinds,
        "validate": check,
    }
