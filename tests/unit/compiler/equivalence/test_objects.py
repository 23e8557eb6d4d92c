"""Generated objects."""

from __future__ import annotations

import copy

from pyverno.compiler.equivalence.objects import ObjectMaker
from pyverno.compiler.equivalence.vocabulary import vocabulary_of
from pyverno.kube.kinds import BUILTIN_KINDS
from tests.unit.compiler.equivalence.test_vocabulary import LEGACY, values

VOCABULARY = vocabulary_of(values(LEGACY))


def test_the_same_seed_makes_the_same_objects() -> None:
    """Of every kind, and their variations."""
    runs = []
    for _ in range(2):
        maker = ObjectMaker(VOCABULARY, 5)
        made = [maker.make(info) for info in VOCABULARY.kinds for _ in range(5)]
        runs.append([*made, *(maker.vary(each) for each in made if each is not None)])
    assert runs[0] == runs[1]


def test_fields_that_policies_mention_are_common() -> None:
    """With their constants as values."""
    maker, pod = ObjectMaker(VOCABULARY, 1), BUILTIN_KINDS.by_kind("Pod")[0]
    pods = [each for _ in range(200) if (each := maker.make(pod)) is not None]
    with_volumes = [each for each in pods if each["spec"].get("volumes")]
    images = {c.get("image") for each in pods for c in each["spec"].get("containers", ())}
    assert len(with_volumes) > 60
    assert "ghcr.io/x" in images
    assert not any("managedFields" in each["metadata"] or "status" in each for each in pods)


def test_every_built_in_kind_can_be_made() -> None:
    """Types that contain themselves end."""
    maker = ObjectMaker(VOCABULARY, 1)
    made = {info.kind for info in BUILTIN_KINDS if maker.make(info) is not None}
    assert {"Pod", "CustomResourceDefinition", "Ingress", "ClusterRole"} <= made


def test_a_variation_leaves_its_object_alone() -> None:
    """And differs from it, mostly."""
    maker = ObjectMaker(VOCABULARY, 3)
    body = maker.make(BUILTIN_KINDS.by_kind("Deployment")[0])
    assert body is not None
    before = copy.deepcopy(body)
    varied = [maker.vary(body) for _ in range(50)]
    assert before == body
    assert sum(each != body for each in varied) > 30
