"""The demands of the policies of a file for one image, compiled as in every other command."""

from __future__ import annotations

from collections.abc import Iterator

from pyverno.compiler import compile_documents
from pyverno.engine.actions.verify_images import ImageBlock, VerifyImages
from pyverno.engine.imageverification.demands import AttestationDemand, Demands
from pyverno.engine.rule import CompiledPolicy, Family
from pyverno.errors import UsageError, raise_all
from pyverno.images.info import ImageInfo, parse_image
from pyverno.images.verification.stored import SignatureForm
from pyverno.kube.yaml.documents import load_documents
from pyverno.registry.verification import DemandVerdict, ImageChecks

__all__ = ["check_policies"]

_ELSEWHERE = "use `pyverno apply --registry`"


def check_policies(path: str, content: bytes, image: str, checks: ImageChecks) -> Iterator[DemandVerdict]:
    """Yield what each demand of a file found; raises UsageError unless its policies demand something of the image.

    Errors of the policies are raised, and so is UsageError for a demand that only a review can judge.
    """
    compilation = compile_documents(load_documents(content, file=path))
    raise_all(compilation.errors)
    named = parse_image(image)
    is_demanded = False
    for policy in compilation.policies:
        if policy.info.family is Family.IMAGES:
            raise UsageError(f"{path}: {policy.info.kind} {policy.info.key} decides in CEL: {_ELSEWHERE}")
        for rule, block in _blocks(policy, named):
            for verdict in _check_block(f"{path}: rule {rule}", block, checks):
                is_demanded = True
                yield verdict
    if not is_demanded:
        raise UsageError(f"{path}: no verifyImages entry demands anything of {named.reference}")


def _blocks(policy: CompiledPolicy, image: ImageInfo) -> Iterator[tuple[str, ImageBlock]]:
    """Yield the entries that apply to an image, with their rules; rules made for pod controllers repeat them."""
    for rule in policy.rules:
        if isinstance(rule.action, VerifyImages) and not rule.info.origin:
            for block in rule.action.blocks:
                if block.selects(image) and not block.skips(image):
                    yield rule.info.name, block


def _check_block(title: str, block: ImageBlock, checks: ImageChecks) -> Iterator[DemandVerdict]:
    demands = _demands(title, block)
    for each in demands.attestors:
        yield checks.check(title, each, forms=(block.signatures,))
    for attestation in demands.attestations:
        yield from _check_attestation(title, block, attestation, checks)


def _demands(title: str, block: ImageBlock) -> Demands:
    if block.demands is None:
        raise UsageError(f"{title} has variables, which only a review knows: {_ELSEWHERE}")
    if block.deny is not None or any(each is not None for each in block.conditions):
        raise UsageError(f"{title} has conditions on attestations: {_ELSEWHERE}")
    if block.demands.attestations and block.attestations is SignatureForm.NOTARY:
        raise UsageError(f"{title} has attestations of the type Notary: {_ELSEWHERE}")
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
