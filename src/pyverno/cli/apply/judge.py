"""Review the resources of `pyverno apply`, one after the other or by several processes with the same outcome.

Worker processes (`spawn`) open their own session over the same inputs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from pyverno.cli.apply.load import Inputs, open_session
from pyverno.cli.errors import bug_text
from pyverno.engine.result import ResourceRef, RuleResult
from pyverno.errors import PyvernoError, UsageError
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.yaml.documents import Document
from pyverno.offline.session import CLEANUP_KINDS, DELETING_KINDS, Session
from pyverno.value import dataclass, replace

__all__ = ["PAYLOAD", "JudgedResource", "judge"]

PAYLOAD = "JSON"
"""The kind under which a payload without one is shown."""

_CHUNK = 64
_DELETING_KINDS = CLEANUP_KINDS | DELETING_KINDS


@dataclass(frozen=True, slots=True)
class JudgedResource:
    """One resource with the results of its review: `manifest` before, `resource` after mutation."""

    document: Document
    manifest: JSONObject
    resource: JSON
    results: tuple[RuleResult, ...]
    problem: str = ""
    payload_kind: str = ""
    blamed: Mapping[tuple[str, str], tuple[str | int, ...]] | None = None
    """Fields at fault by policy and rule, for rules whose first failure is accepted."""

    @property
    def name(self) -> str:
        """The name in the manifest, that of the file for a payload without kind and name."""
        metadata = self.manifest.get("metadata")
        name = metadata.get("name") if isinstance(metadata, dict) else None
        return str(name or ("" if self.manifest.get("kind") else self.document.file))

    @property
    def ref(self) -> ResourceRef:
        """The name of the resource; a payload without kind and name has that of its file."""
        ref = ResourceRef.of(self.manifest)
        return ref if ref.kind or ref.name else ResourceRef("", self.payload_kind or PAYLOAD, "", self.document.file)


class _Reviewed(NamedTuple):
    """The object after mutation, its results, and what kept it from being reviewed; a bug does not end a run."""

    resource: JSON
    results: tuple[RuleResult, ...] = ()
    problem: str = ""
    is_bug: bool = False


def judge(
    inputs: Inputs, session: Session, *, workers: int = 1, continue_on_fail: bool = False
) -> Iterable[JudgedResource]:
    """Yield every resource with its results, in the order of the input, and then the authorization requests.

    A resource that cannot be reviewed ends the run with UsageError, or has a `problem` with `continue_on_fail`.
    """
    if not session.policies:
        return
    yield from _judge_resources(inputs, session, workers=workers, continue_on_fail=continue_on_fail)
    for mode, document in inputs.checks:
        try:
            item = _Reviewed(document.value, session.check(document.value, mode).results)
        except PyvernoError:
            raise
        except Exception as error:  # as in `_review_all`
            item = _Reviewed(document.value, problem=bug_text(error))
        yield JudgedResource(document, document.value, document.value, item.results, item.problem, payload_kind=mode)


def _judge_resources(
    inputs: Inputs, session: Session, *, workers: int, continue_on_fail: bool
) -> Iterator[JudgedResource]:
    if workers > 1 and len(inputs.manifests) > 1:
        reviewed = _review_by_workers(inputs, min(workers, len(inputs.manifests)))
    else:
        reviewed = _review_all(session, inputs.manifests, payloads=inputs.has_payloads, is_kyverno=inputs.is_kyverno)
    for document, manifest, (resource, results, problem, is_bug) in zip(
        inputs.resources, inputs.manifests, reviewed, strict=True
    ):
        if problem and not is_bug and not continue_on_fail:
            raise UsageError(f"failed to apply policies on resource {ResourceRef.of(manifest).name} ({problem})")
        kind = PAYLOAD if inputs.has_payloads else ""
        yield JudgedResource(document, manifest, resource, results, problem, kind)


def _review_all(
    session: Session, manifests: Iterable[JSONObject], *, payloads: bool, is_kyverno: bool
) -> Iterator[_Reviewed]:
    for manifest in manifests:
        try:
            review = session.payload(manifest) if payloads else session.review(manifest)
            # Kyverno: deleting policies see the object as it was loaded
            results = review.results
            if not payloads:
                results += session.deletions(manifest, _DELETING_KINDS, reports_mismatch=is_kyverno)
        except PyvernoError as error:
            yield _Reviewed(manifest, problem=str(error))
        except Exception as error:  # a bug in one resource costs that one, and the run its exit code
            yield _Reviewed(manifest, problem=bug_text(error), is_bug=True)
        else:
            yield _Reviewed(review.resource, results)


# set by the initialiser for the chunks of its process; empty in the parent
_worker: list[tuple[Session, Inputs]] = []


def _start_worker(inputs: Inputs) -> None:
    registries = None
    if inputs.registry is not None:
        from pyverno.cli.registries import open_registries

        registries = open_registries(inputs.registry).source
    _worker.append((open_session(inputs, registries), inputs))


def _judge_chunk(positions: tuple[int, int]) -> Sequence[_Reviewed]:
    session, inputs = _worker[0]
    first, end = positions
    manifests = inputs.manifests[first:end]
    return [*_review_all(session, manifests, payloads=inputs.has_payloads, is_kyverno=inputs.is_kyverno)]


def _review_by_workers(inputs: Inputs, workers: int) -> Iterator[_Reviewed]:
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    total = len(inputs.manifests)
    size = max(1, min(_CHUNK, -(-total // workers)))
    chunks = [(first, min(first + size, total)) for first in range(0, total, size)]
    context = get_context("spawn")
    # documents carry their whole text, which only the locations of findings need
    needed = replace(inputs, resources=[], errors=[], warnings=[])
    with ProcessPoolExecutor(workers, mp_context=context, initializer=_start_worker, initargs=(needed,)) as pool:
        # results wait in this process: submit no more than keeps the workers busy
        waiting = deque([pool.submit(_judge_chunk, chunk) for chunk in chunks[: 2 * workers]])
        for chunk in chunks[2 * workers :]:
            yield from waiting.popleft().result()
            waiting.append(pool.submit(_judge_chunk, chunk))
        for reviewed in waiting:
            yield from reviewed.result()
