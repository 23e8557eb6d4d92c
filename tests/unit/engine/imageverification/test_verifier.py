"""The images of one object are read in parallel, and each answer is read once in a review."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest
from aiohttp import web

from pyverno.engine.phases import MUTATING, VALIDATING
from pyverno.kube.json import JSONObject
from tests.support.images import ImageStage, image_stage, signed_images

TAGS = ("v1", "v2", "v3")


@pytest.fixture
def stage() -> Iterator[ImageStage]:
    """A registry with its own certificate authorities."""
    with image_stage() as made:
        yield made


def _meet(stage: ImageStage, suffix: Callable[[str], bool]) -> None:
    """Let the registry answer the chosen manifests only when as many requests as tags wait for theirs."""
    together: list[asyncio.Barrier] = []

    async def wait(request: web.Request) -> web.StreamResponse | None:
        if not suffix(request.path.rpartition("/")[2]):
            return None
        if not together:
            together.append(asyncio.Barrier(len(TAGS)))
        try:
            async with asyncio.timeout(60):
                await together[0].wait()
        except (TimeoutError, asyncio.BrokenBarrierError):
            return web.json_response({}, status=418)
        return None

    stage.registry.fault = wait


def _is_tag(reference: str) -> bool:
    return reference in TAGS


def _is_signature(reference: str) -> bool:
    return reference.endswith(".sig")


def _sign(stage: ImageStage) -> list[str]:
    digests = [stage.push(tag) for tag in TAGS]
    for digest in digests:
        stage.sign(digest)
    return digests


@pytest.mark.parametrize("reads", [_is_tag, _is_signature])
def test_a_rule_reads_the_images_of_a_pod_in_parallel(stage: ImageStage, reads: Callable[[str], bool]) -> None:
    """Tags are resolved together, and so are the signatures fetched."""
    _sign(stage)
    _meet(stage, reads)
    review = stage.review(stage.policy(), *map(stage.image, TAGS), phases=MUTATING)
    assert [each.status.value for each in review.results] == ["pass"] * 3


@pytest.mark.parametrize("reads", [_is_tag, _is_signature])
def test_a_rule_reads_the_images_in_parallel_where_nothing_is_changed(
    stage: ImageStage, reads: Callable[[str], bool]
) -> None:
    """The second phase verifies by itself when the first one did not run."""
    _sign(stage)
    _meet(stage, reads)
    review = stage.review(stage.policy(verifyDigest=False), *map(stage.image, TAGS), phases=VALIDATING)
    assert [(each.status.value, each.message) for each in review.results] == [("pass", "image verified")]


def test_digests_are_pinned_in_parallel(stage: ImageStage) -> None:
    """An ImageValidatingPolicy resolves all tags of a Pod together."""
    _sign(stage)
    _meet(stage, _is_tag)
    review = stage.review(signed_images(stage.signer.public_pem), *map(stage.image, TAGS), phases=MUTATING)
    assert [each.status.value for each in review.results] == ["pass"]


def test_expressions_read_images_in_parallel(stage: ImageStage) -> None:
    """The first image that an expression verifies fetches the signatures of the others as well."""
    images = [f"{stage.image(tag)}@{digest}" for tag, digest in zip(TAGS, _sign(stage), strict=True)]
    _meet(stage, _is_signature)
    review = stage.review(signed_images(stage.signer.public_pem), *images, phases=VALIDATING)
    assert {each.status.value for each in review.results} == {"pass"}


def _requests(stage: ImageStage) -> list[str]:
    seen: list[str] = []

    async def count(request: web.Request) -> web.StreamResponse | None:
        seen.append(request.path.rpartition("/")[2])
        return None

    stage.registry.fault = count
    return seen


def test_images_that_are_skipped_are_not_read(stage: ImageStage) -> None:
    """Only images that the entry verifies are read together with the first."""
    _sign(stage)
    seen = _requests(stage)
    policy = stage.policy(skipImageReferences=[stage.image("v2")])
    stage.review(policy, *map(stage.image, TAGS), phases=MUTATING)
    assert "v1" in seen
    assert "v3" in seen
    assert [each for each in seen if each == "v2"] == ["v2"]  # to pin its digest, not to verify it


def test_the_failure_of_one_image_is_not_that_of_another(stage: ImageStage) -> None:
    """Each image of those that are read together has its own answer."""
    for tag in ("v1", "v3"):
        stage.sign(stage.push(tag))
    review = stage.review(stage.policy(), *map(stage.image, TAGS), phases=MUTATING)
    assert [each.status.value for each in review.results] == ["pass", "fail", "pass"]


def test_a_pod_of_more_images_than_calls_ends_in_an_error_not_in_a_pass(stage: ImageStage) -> None:
    """The calls of a review are limited; reading together spends them, and does not go beyond."""
    digest = stage.push()
    stage.sign(digest)
    images = [stage.image(f"n{number}") for number in range(120)]
    policy: JSONObject = stage.policy()
    statuses = [each.status.value for each in stage.review(policy, *images, phases=MUTATING).results]
    assert statuses == ["fail"] * 100 + ["error"] * 20
