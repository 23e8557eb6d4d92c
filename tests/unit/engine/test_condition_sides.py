"""Whose wildcards count: those of the policy everywhere, those of the object only where they cannot excuse (I10)."""

from __future__ import annotations

import pytest

from pyverno.engine.rules.conditions import compile_conditions
from pyverno.kube.json import JSON
from pyverno.lang.pattern.operators import OPERATORS
from pyverno.lang.runtime import Runtime

# what is in the policy and what came with the object, with the wildcard on one of the two sides
WILD_OBJECT, PLAIN_POLICY = "*", "NET_RAW"
PLAIN_OBJECT, WILD_POLICY = "NET_RAW", "NET_*"
OBJECT, LIST = "{{ request.object.caps }}", "{{ found.data.list }}"

# operator, does it hold: wildcard of the object as key, as value; of the policy as value, as key
TABLE = [
    ("AnyIn", True, True, True, True),
    ("AllIn", True, True, True, True),
    ("In", True, True, True, True),
    ("AnyNotIn", True, True, False, False),
    ("AllNotIn", True, True, False, False),
    ("NotIn", True, True, False, False),
    ("Equals", False, True, True, False),
    ("NotEquals", True, True, False, True),
]


# the same of conditions that let an object pass when they hold
EXCUSES = [
    ("AnyIn", False, False, True, True),
    ("AllIn", False, False, True, True),
    ("In", False, False, True, True),
    ("AnyNotIn", False, False, False, False),
    ("AllNotIn", False, False, False, False),
    ("NotIn", False, False, False, False),
    ("Equals", False, False, True, False),
    ("Equal", False, False, True, False),
    ("NotEquals", True, False, False, True),
]


def holds(operator: str, key: JSON, value: JSON, caps: JSON, listed: JSON = None, *, excuse: bool = False) -> bool:
    """Return whether a condition holds for an object with these capabilities, and a list of a ConfigMap."""
    conditions = compile_conditions({"all": [{"key": key, "operator": operator, "value": value}]}, excuse=excuse)
    scope: dict[str, JSON] = {"request": {"object": {"caps": caps}}, "found": {"data": {"list": listed}}}
    return conditions.check(scope, Runtime()).met


@pytest.mark.parametrize(
    ("excuse", "operator", "as_key", "as_value", "policy_value", "policy_key"),
    [*((False, *row) for row in TABLE), *((True, *row) for row in EXCUSES)],
)
@pytest.mark.parametrize("lists", [False, True], ids=["text", "list"])
def test_whose_wildcards_count(
    operator: str, as_key: bool, as_value: bool, policy_value: bool, policy_key: bool, *, excuse: bool, lists: bool
) -> None:
    """Table of operator, side and direction; a list of one item as key behaves like the item alone."""
    is_member = operator.endswith("In")
    if lists and operator not in ("AnyIn", "AllIn", "AnyNotIn", "AllNotIn"):
        return  # the others do not look into lists for wildcards

    def as_sent(text: str) -> JSON:
        return [text] if lists else text

    def as_listed(text: str) -> JSON:
        return [text] if is_member else text

    found = (
        holds(operator, OBJECT, as_listed(PLAIN_POLICY), as_sent(WILD_OBJECT), excuse=excuse),
        holds(operator, as_sent(PLAIN_POLICY), OBJECT, as_listed(WILD_OBJECT), excuse=excuse),
        holds(operator, OBJECT, as_listed(WILD_POLICY), as_sent(PLAIN_OBJECT), excuse=excuse),
        holds(operator, as_sent(WILD_POLICY), OBJECT, as_listed(PLAIN_OBJECT), excuse=excuse),
    )
    assert (as_key, as_value, policy_value, policy_key) == found


@pytest.mark.parametrize("key", ['found.data."{{ request.object.ns }}"', "lookup(found.data, request.object.ns)"])
def test_a_list_that_the_request_chooses_holds_patterns(key: str) -> None:
    """A ConfigMap with a list for each namespace is text of the policy, whichever list it is."""
    conditions = compile_conditions([{"key": OBJECT, "operator": "AnyNotIn", "value": f"{{{{ {key} }}}}"}])
    scope: dict[str, JSON] = {"found": {"data": {"team": ["NET_*"], "*": ["X"]}}}

    def met(caps: str, namespace: str) -> bool:
        return conditions.check({**scope, "request": {"object": {"caps": caps, "ns": namespace}}}, Runtime()).met

    assert (False, True, True) == (met("NET_RAW", "team"), met("CHOWN", "team"), met("NET_RAW", "*"))


@pytest.mark.parametrize("name", [name for name, operator in OPERATORS.items() if not operator.is_exact])
def test_every_operator_with_wildcards_is_in_the_tables(name: str) -> None:
    """An operator that is added gets its row; names that end in Equal are those in Equals."""
    assert {name, f"{name}s"} & {row[0] for row in TABLE}
    assert {name, f"{name}s"} & {row[0] for row in EXCUSES}


@pytest.mark.parametrize("operator", ["AnyNotIn", "AllNotIn", "NotIn"])
def test_a_list_of_a_config_map_holds_patterns(operator: str) -> None:
    """Where both sides are variables, the one that reads the request is data, on whichever side it is."""
    assert not holds(operator, OBJECT, LIST, "ghcr.io/app", ["ghcr.io/*"])
    assert holds(operator, OBJECT, LIST, "*", ["ghcr.io/*"])
    assert holds(operator, "{{ found.data.list }}", OBJECT, ["*"], "ghcr.io/app")


@pytest.mark.parametrize("operator", ["AnyNotIn", "AllNotIn", "NotIn"])
def test_items_that_the_policy_writes_are_patterns(operator: str) -> None:
    """A list of the policy may have items that are variables: these are data, the others are not."""
    value = ["{{ request.object.caps }}", "NET_*"]
    assert not holds(operator, "NET_RAW", value, "x")
    assert holds(operator, "SYS_ADMIN", value, "*")


@pytest.mark.parametrize(
    ("value", "holds_for_own", "holds_for_other"),
    [
        ("{{ request.namespace }}/*", False, True),
        ("{{ request.object.metadata.namespace }}/*", False, True),
        ("{{ request.oldObject.metadata.namespace }}/{{ request.object.metadata.namespace || 'x' }}*", True, True),
        ("{{ request.namespace }}/{{ request.object.caps }}", True, True),
        ("{{ request.object.caps }}/*", True, True),
    ],
)
def test_a_wildcard_beside_the_namespace_is_the_policys(value: str, holds_for_own: bool, holds_for_other: bool) -> None:
    """The name of a namespace has no wildcard; text of the object may have some, and makes the whole value data."""
    conditions = compile_conditions({"all": [{"key": "{{ element.name }}", "operator": "NotEquals", "value": value}]})

    def holds_for(name: str) -> bool:
        stored = {"caps": "*", "metadata": {"namespace": "a"}}
        request: JSON = {"namespace": "a", "object": stored, "oldObject": stored}
        scope: dict[str, JSON] = {"request": request, "element": {"name": name}}
        return conditions.check(scope, Runtime()).met

    assert (holds_for_own, holds_for_other) == (holds_for("a/policy"), holds_for("b/policy"))


def test_a_range_of_the_object_is_text() -> None:
    """A range in the object's data is compared as text on both sides."""
    assert holds("AnyNotIn", ["5"], OBJECT, "1-10")
    assert not holds("AnyNotIn", OBJECT, "1-10", "5")
