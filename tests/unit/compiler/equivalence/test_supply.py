"""The order in which objects come."""

from __future__ import annotations

from pyverno.compiler.equivalence.objects import ObjectMaker
from pyverno.compiler.equivalence.supply import ObjectSupply
from pyverno.compiler.equivalence.vocabulary import Vocabulary
from pyverno.policy.kinds import KNOWN_KINDS

KINDS = tuple(KNOWN_KINDS.by_kind(kind)[0] for kind in ("ConfigMap", "Secret"))
VOCABULARY = Vocabulary(KINDS, frozenset({"data"}), ("x",), {"labels": ("a",)})


def test_given_objects_come_first() -> None:
    """Then plain ones of each kind in turn."""
    seed = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "given"}}
    kinds = [each["kind"] for each in ObjectSupply(ObjectMaker(VOCABULARY, 7), VOCABULARY, [seed], 4)]
    assert ["ConfigMap", "ConfigMap", "Secret"] == kinds[:3]


def test_a_kind_that_is_never_matched_makes_room() -> None:
    """Kinds that neither side matches come up seldom after some tries."""
    supply = ObjectSupply(ObjectMaker(VOCABULARY, 7), VOCABULARY, [], 400)
    seen = {"ConfigMap": 0, "Secret": 0}
    for body in supply:
        seen[body["kind"]] += 1
        supply.note(f"v1/{body['kind']}", is_matched=body["kind"] == "ConfigMap")
    assert seen["Secret"] * 4 < seen["ConfigMap"]


def test_the_same_seed_gives_the_same_objects() -> None:
    """A record of a comparison can be repeated."""
    runs = [[*ObjectSupply(ObjectMaker(VOCABULARY, 7), VOCABULARY, [], 60)] for _ in range(2)]
    assert runs[0] == runs[1]
