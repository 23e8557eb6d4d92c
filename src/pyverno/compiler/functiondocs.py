"""Functions of both expression languages, and operators of conditions, as they document themselves.

This module must never describe a function in its own words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from pyverno.compiler.cel.environment import environment_of_kind
from pyverno.lang.cel.listing import Listed, listed_functions
from pyverno.lang.cel.presets import kubernetes_environment
from pyverno.lang.jmespath import FUNCTIONS
from pyverno.lang.pattern.operators import OPERATORS
from pyverno.policy.kinds import Family, find_kind
from pyverno.value import dataclass

__all__ = ["FunctionDoc", "cel_functions", "condition_operators", "jmespath_functions"]


@dataclass(frozen=True, slots=True)
class FunctionDoc:
    """One function: its calls, what it does, and examples; `is_member` where it is called on a value."""

    name: str
    signatures: tuple[str, ...]
    text: str
    examples: tuple[str, ...] = ()
    is_member: bool = False


@cache
def jmespath_functions() -> Mapping[str, FunctionDoc]:
    """Return the functions of JMESPath by name.

    >>> jmespath_functions()["to_upper"].signatures
    ('to_upper(string) string',)
    """
    found = {}
    for name, each in sorted(FUNCTIONS.items()):
        lines = each.documentation.splitlines()
        text = lines[0] if lines else each.note
        examples = tuple(f"{expression} → {result}" for expression, result in each.examples)
        found[name] = FunctionDoc(name, (each.signature,), text, examples)
    return found


@cache
def cel_functions(group: str, kind: str) -> Mapping[str, FunctionDoc]:
    """Return the functions of CEL by name, as expressions of a policy kind have them.

    >>> cel_functions("policies.kyverno.io", "ValidatingPolicy")["parseServiceAccount"].is_member
    False
    """
    row = find_kind(group, kind)
    is_ours = row is not None and row.family is Family.CEL
    environment = environment_of_kind(kind) if is_ours else kubernetes_environment(mutation=kind.startswith("Mutating"))
    by_name: dict[str, list[Listed]] = {}
    for each in listed_functions(environment):
        by_name.setdefault(each.name, []).append(each)
    return {name: _merge(name, items) for name, items in by_name.items()}


def condition_operators() -> Mapping[str, str]:
    """Return what each operator of conditions means, by name; deprecated ones are left out.

    >>> "AnyIn" in condition_operators(), "In" in condition_operators()
    (True, False)
    """
    return {each.name: each.summary for each in OPERATORS.values() if not each.alternatives}


def _merge(name: str, items: Sequence[Listed]) -> FunctionDoc:
    signatures = tuple(signature for each in items for signature in each.signatures)
    text = next((each.note for each in items if each.note), "")
    examples = tuple(example for each in items for example in each.examples)
    return FunctionDoc(name, signatures, text, examples, all(not each.startswith(f"{name}(") for each in signatures))
