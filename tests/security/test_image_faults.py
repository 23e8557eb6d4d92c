"""F4, I7 of images: a bug anywhere in the verification of a signature or attestation never lets an image through.

`test_faults.py` has no registry; here one answers, and every function from the rule to the registry's client fails
once and always.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Mapping

import pytest

from pyverno.compiler.compile import compile_documents
from pyverno.engine.engine import Engine, Review
from pyverno.engine.request import Request
from pyverno.engine.result import Status
from pyverno.errors import EvaluationError, HostError, HostUnavailableError, NotFoundError, VerificationError
from pyverno.kube.json import JSONObject
from pyverno.kube.yaml.documents import Document
from tests.security.faultsites import Sites, modules_of, sampled
from tests.support.images import ImageStage, image_stage, signed_images

ROOMS = (
    *("pyverno.engine.imageverification", "pyverno.engine.actions.verify_images", "pyverno.engine.actions.cel.images"),
    *("pyverno.engine.cel.images", "pyverno.engine.broker", "pyverno.images", "pyverno.registry"),
)
TYPE = "https://example.com/scan"


class OddError(KeyError):
    """An exception of a type that the code does not know."""


ERRORS: tuple[type[BaseException] | Callable[[], BaseException], ...] = (
    OddError,
    TypeError,
    lambda: VerificationError("planted"),
    lambda: HostError("planted"),
    lambda: HostUnavailableError("planted"),
    lambda: NotFoundError("planted"),
    lambda: EvaluationError("planted"),
)
"""A bug, and the errors that the code expects somewhere: where one of them means "there is none", nothing may pass."""


def _attested(stage: ImageStage) -> JSONObject:
    condition = {"key": "{{ critical }}", "operator": "Equals", "value": 0}
    attestors = [{"entries": [{"keys": {"publicKeys": stage.signer.public_pem}}]}]
    attestation = {"type": TYPE, "attestors": attestors, "conditions": [{"all": [condition]}]}
    return stage.policy(attestors=[], attestations=[attestation], useCache=False)


def _policies(stage: ImageStage) -> Mapping[str, JSONObject]:
    """Return policies of which each denies the images below."""
    keys = [{"keys": {"publicKeys": each}} for each in (stage.signer.public_pem, stage.services.keyed().public_pem)]
    return {
        "signed": stage.policy(useCache=False),
        "signed by two": stage.policy(attestors=[{"entries": keys}], useCache=False),
        "signed in a bundle": stage.policy(type="SigstoreBundle", useCache=False),
        "attested": _attested(stage),
        "in CEL": signed_images(stage.signer.public_pem),
    }


def _images(stage: ImageStage) -> list[str]:
    """Push images that no policy accepts: without, or with the wrong, signature and attestation."""
    stranger = stage.services.keyed()
    for tag in ("unsigned", "foreign"):
        digest = stage.push(tag)
        if tag == "foreign":
            stage.sign(digest, stranger.sign_layer(digest))
            stage.attest(digest, stranger.attest_layer(digest, {"critical": 0}, TYPE))
            stage.bundle(digest, stranger)
    return [stage.image(tag) for tag in ("unsigned", "foreign")]


def _judge(stage: ImageStage, policy: JSONObject) -> Callable[[str], Review]:
    """Compile a policy; return what reviews a Pod with an image by it."""
    compilation = compile_documents([Document(policy)])
    assert () == compilation.errors
    engine = Engine(compilation.policy_set(), stage.host)
    return lambda image: engine.review(Request.from_manifest(stage.pod(image)))


def _problem(review: Review) -> str:
    """Return how an image got through, "" when it did not."""
    if review.decision.allowed:
        return "it is admitted"
    bad = [result for result in review.results if result.status in (Status.FAIL, Status.ERROR)]
    return "" if bad else "no rule says why"


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_no_bug_lets_an_image_through() -> None:
    """Every site, bugs and typed errors: the denial stays, also afterwards."""
    sites = Sites(
        modules=lambda: modules_of(*ROOMS),
        owners=(),
        accepts=lambda site: not site.startswith(("pyverno.value.", "pyverno.lazyregex.")),
    )
    problems: dict[str, str] = {}
    thrown, reached = 0, set()
    with image_stage() as stage:
        images = _images(stage)
        with sites.installed():
            for name, policy in _policies(stage).items():
                judge = _judge(stage, policy)
                for image in images:
                    sites.calls, sites.is_counting = {}, True
                    assert "" == _problem(judge(image)), name
                    sites.is_counting = False
                    reached |= sites.calls.keys()
                    for number, site in enumerate(sampled(sites.calls, 16)):
                        errors = ERRORS if os.environ.get("PYVERNO_NIGHTLY") else [ERRORS[number % len(ERRORS)]]
                        for error in errors:
                            for always in (False, True):
                                sites.arm(site, error, always=always)
                                found = _asked(judge, image)
                                sites.disarm()
                                thrown += sites.thrown
                                if found:
                                    problems[f"{name}, {image.rpartition(':')[2]}: {site}"] = found
                    assert "" == _problem(judge(image)), "something was remembered"
    gc.collect()  # coroutines whose call failed, while their warnings are ignored
    assert {} == problems
    assert thrown >= 150
    assert len(reached) >= 100


def _asked(judge: Callable[[str], Review], image: str) -> str:
    try:
        return _problem(judge(image))
    except Exception as error:
        return f"{error!r} escaped"


@pytest.mark.parametrize("kind", ["signed", "in CEL"])
def test_an_image_that_is_signed_is_admitted(kind: str) -> None:
    """The harmless twin."""
    with image_stage() as stage:
        stage.sign(stage.push())
        assert _judge(stage, _policies(stage)[kind])(stage.image()).decision.allowed
