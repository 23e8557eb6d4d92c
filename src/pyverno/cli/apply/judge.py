"""The resources of `pyverno apply`, judged one after the other or by several processes with the same outcome.

Workers are new processes (`spawn`) that make their own session from the same material. This module must never print.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pyverno.cli.apply.load import Material, Session, open_session
from pyverno.engine.result import ResourceRef, RuleResult
from pyverno.errors import PyvernoError, UsageError
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.yaml.documents import Document
from pyverno.offline.session import CLEANUP_KINDS, DELETING_KINDS, Evaluation
from pyverno.value import dataclass, replace

__all__ = ["JudgedResource", "judge"]

_CHUNK = 64
_DELETING_KINDS = CLEANUP_KINDS | DELETING_KINDS


@dataclass(frozen=True, slots=True)
class JudgedResource:
    """One resource with what the policies said; `manifest` is what they saw, `resource` what they made of it."""

    document: Document
    manifest: JSONObject
    resource: JSON
    results: tuple[RuleResult, ...]
    problem: str = ""
    payload_kind: str = "JSON"

    @property
    def ref(self) -> ResourceRef:
        """The name of the resource; a payload that is none is named after its file."""
        ref = ResourceRef.of(self.manifest)
        return ref if ref.kind or ref.name else ResourceRef("", self.payload_kind, "", self.document.file)


_Answer = tuple[JSON, tuple[RuleResult, ...], str]


def judge(
    material: Material, session: Session, *, workers: int = 1, continue_on_fail: bool = False
) -> Iterable[JudgedResource]:
    """Yield every resource with its results, in the order of the input, and then the authorization requests.

    A resource that can not be asked about ends the run with UsageError, or has a `problem` with `continue_on_fail`.
    """
    if not session.evaluation.policies:
        return
    yield from _judged_resources(material, session, workers=workers, continue_on_fail=continue_on_fail)
    for mode, document in material.checks:
        results = session.evaluation.check(document.value, mode).results
        yield JudgedResource(document, document.value, document.value, results, payload_kind=mode)


def _judged_resources(
    material: Material, session: Session, *, workers: int, continue_on_fail: bool
) -> Iterator[JudgedResource]:
    if workers > 1 and len(material.manifests) > 1:
        answers = _by_workers(material, min(workers, len(material.manifests)))
    else:
        answers = _answers(session.evaluation, material.manifests, payloads=material.has_payloads)
    for document, manifest, (resource, results, problem) in zip(
        material.resources, material.manifests, answers, strict=True
    ):
        if problem and not continue_on_fail:
            raise UsageError(f"failed to apply policies on resource {ResourceRef.of(manifest).name} ({problem})")
        yield JudgedResource(document, manifest, resource, results, problem)


def _answers(evaluation: Evaluation, manifests: Iterable[JSONObject], *, payloads: bool) -> Iterator[_Answer]:
    for manifest in manifests:
        try:
            review = evaluation.payload(manifest) if payloads else evaluation.review(manifest)
            # Kyverno: deleting policies see the object as it was loaded
            results = review.results if payloads else review.results + evaluation.deletions(manifest, _DELETING_KINDS)
        except PyvernoError as error:
            yield manifest, (), str(error)
        else:
            yield review.resource, results, ""


# what the initialiser leaves for the chunks of its own process; empty in the parent
_worker: list[tuple[Evaluation, Material]] = []


def _start_worker(material: Material) -> None:
    _worker.append((open_session(material).evaluation, material))


def _judge_chunk(positions: tuple[int, int]) -> Sequence[_Answer]:
    evaluation, material = _worker[0]
    first, end = positions
    return [*_answers(evaluation, material.manifests[first:end], payloads=material.has_payloads)]


def _by_workers(material: Material, workers: int) -> Iterator[_Answer]:
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    total = len(material.manifests)
    size = max(1, min(_CHUNK, -(-total // workers)))
    chunks = [(first, min(first + size, total)) for first in range(0, total, size)]
    context = get_context("spawn")
    # the documents as written carry their whole text, which only places of findings need
    needed = replace(material, resources=[], errors=[], warnings=[])
    with ProcessPoolExecutor(workers, mp_context=context, initializer=_start_worker, initargs=(needed,)) as pool:
        for answers in pool.map(_judge_chunk, chunks):
            yield from answers
