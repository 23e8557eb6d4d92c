"""Functions as they document themselves."""

from __future__ import annotations

from pyverno.compiler.functiondocs import cel_functions, condition_operators, jmespath_functions
from pyverno.policy.kinds import POLICY_KINDS, Family


def test_every_function_has_a_signature_and_a_text() -> None:
    """Of both languages, for every kind of policy; macros are known by their calls."""
    kinds = [(row.group, row.kind) for row in POLICY_KINDS if row.family in (Family.CEL, Family.ADMISSION)]
    found = [each for kind in kinds for each in cel_functions(*kind).values()]
    without = {each.name for each in (*found, *jmespath_functions().values()) if not each.signatures or not each.text}
    assert set() == without


def test_overloads_of_several_libraries_are_one_function() -> None:
    """With all of their calls."""
    contains = cel_functions("policies.kyverno.io", "ValidatingPolicy")["indexOf"]
    assert {"string", "list"} <= {
        each.partition("(")[0].partition("<")[0].partition(".")[0] for each in contains.signatures
    }


def test_operators_have_a_meaning() -> None:
    """Deprecated ones are none that an editor offers."""
    assert all(condition_operators().values())
