"""The demands of the policies of a file for one image, compiled as in every other command."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from pyverno.compiler import Compilation, compile_documents
from pyverno.engine.actions.verify_images import ImageBlock, VerifyImages
from pyverno.engine.imageverification.demands import AttestationDemand, Demands
from pyverno.engine.rule import CompiledPolicy, Family
from pyverno.errors import UsageError, raise_all
from pyverno.images.info import ImageInfo, parse_image
from pyverno.images.verification.stored import SignatureForm
from pyverno.kube.yaml.documents import load_documents
from pyverno.registry.verification import DemandVerdict, ImageChecks

__all__ = ["check_policies"]

Review = Callable[[Compilation, str, str], Iterable[DemandVerdict]]
"""Returns the decision of a review by a policy, or by one of its rules, among the compiled policies."""


class _NeedsReviewError(Exception):
    """A rule depends on more than signatures: variables, or conditions on attestations."""


def check_policies(
    path: str, content: bytes, image: str, checks: ImageChecks, review: Review
) -> Iterator[DemandVerdict]:
    """Yield the verdict of each demand of a file; raises UsageError when its policies demand nothing of the image.

    Policies in CEL, and rules whose demands depend on more than signatures, are judged by `review`. Errors of the
    policies are raised.
    """
    compilation = compile_documents(load_documents(content, file=path))
    raise_all(compilation.errors)
    named = parse_image(image)
    is_demanded = False
    for policy in compilation.policies:
        for verdict in _check_policy(path, policy, named, checks, partial(review, compilation, policy.info.key)):
            is_demanded = True
            yield verdict
    if not is_demanded:
        raise UsageError(f"{path}: no policy demands a verification of {named.reference}")


def _check_policy(
    path: str,
    policy: CompiledPolicy,
    image: ImageInfo,
    checks: ImageChecks,
    review: Callable[[str], Iterable[DemandVerdict]],
) -> Iterator[DemandVerdict]:
    if policy.info.family is Family.IMAGES:
        yield from review("")
        return
    for rule, blocks in _rules(policy, image):
        try:
            demands = [(block, _demands(block)) for block in blocks]
        except _NeedsReviewError:
            yield from review(rule)
            continue
        for block, found in demands:
            yield from _check_block(f"{path}: rule {rule}", block, found, checks)


def _rules(policy: CompiledPolicy, image: ImageInfo) -> Iterator[tuple[str, Sequence[ImageBlock]]]:
    """Yield rules with their entries that apply to an image; rules made for pod controllers repeat them."""
    for rule in policy.rules:
        if isinstance(rule.action, VerifyImages) and not rule.info.origin:
            blocks = [each for each in rule.action.blocks if each.selects(image) and not each.skips(image)]
            if blocks:
                yield rule.info.name, blocks


def _check_block(title: str, block: ImageBlock, demands: Demands, checks: ImageChecks) -> Iterator[DemandVerdict]:
    for each in demands.attestors:
        yield checks.check(title, each, forms=(block.signatures,))
    for attestation in demands.attestations:
        yield from _check_attestation(title, block, attestation, checks)


def _demands(block: ImageBlock) -> Demands:
    """Return the demands of an entry; raises _NeedsReviewError for one that depends on more than signatures."""
    if (
        block.demands is None
        or block.deny is not None
        or any(each is not None for each in block.conditions)
        or (block.demands.attestations and block.attestations is SignatureForm.NOTARY)
    ):
        raise _NeedsReviewError
    return block.demands


def _check_attestation(
    title: str, block: ImageBlock, demand: AttestationDemand, checks: ImageChecks
) -> Iterator[DemandVerdict]:
    title = f"{title}: attestation {demand.type or demand.name}"
    if not demand.type:
        yield DemandVerdict(title, False, (f"{demand.path}: missing type",))
    elif not demand.attestors:
        yield DemandVerdict(title, False, (f"{demand.path}.attestors: an attestor is required",))
    else:
        for each in demand.attestors:
            yield checks.check(title, each, demand.type, (block.attestations,))
