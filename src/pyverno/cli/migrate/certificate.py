"""The certificate of a conversion: the comparison with its source, its record, and an annotation as a summary."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Final

from pyverno.compiler import compile_documents
from pyverno.compiler.equivalence.cluster import cluster_objects, cluster_reads
from pyverno.compiler.equivalence.compare import Comparison, Pair, compare
from pyverno.compiler.equivalence.coverage import BranchCoverage, branch_coverage
from pyverno.compiler.equivalence.vocabulary import Vocabulary, vocabulary_of
from pyverno.engine.engine import Engine
from pyverno.engine.policyset import PolicySet
from pyverno.engine.request import Operation
from pyverno.errors import raise_all
from pyverno.kube.json import JSONObject, encode
from pyverno.kube.yaml.documents import Document
from pyverno.offline.host import OfflineHost
from pyverno.offline.objects import ObjectStore
from pyverno.value import dataclass
from pyverno.version import __version__

__all__ = [
    "CERTIFICATE",
    "Settings",
    "Verification",
    "certified",
    "digest",
    "host_of",
    "raw_differences",
    "record_of",
    "verify",
]

CERTIFICATE: Final = "policies.pyverno.io/certificate"
_OPERATIONS: Final = (Operation.CREATE, Operation.UPDATE, Operation.DELETE)

Admit = Callable[[JSONObject], JSONObject | None]


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a comparison: its size, seed, schemas and first objects."""

    objects: int
    seed: int
    kube_version: str
    admit: Admit
    seeds: tuple[JSONObject, ...] = ()
    definitions: tuple[JSONObject, ...] = ()


@dataclass(frozen=True, slots=True)
class Verification:
    """A comparison, the branches of each side that its requests took, and the number of objects in its cluster."""

    comparison: Comparison
    old: BranchCoverage
    new: BranchCoverage
    cluster: int = 0


def verify(
    old: Sequence[JSONObject], new: Sequence[JSONObject], settings: Settings, *, judges_deleted: bool = True
) -> Verification:
    """Judge generated objects by both sides; raises PyvernoError when a side does not compile."""
    vocabulary = vocabulary_of((*old, *new), settings.definitions)
    host = host_of((*old, *new), vocabulary, settings.admit, settings.seeds)
    pair = Pair(_engine(old, host), _engine(new, host), settings.admit)
    found = compare(
        pair,
        vocabulary,
        seeds=settings.seeds,
        count=settings.objects,
        seed=settings.seed,
        operations=_operations(new) if judges_deleted else _OPERATIONS[:2],
    )
    first, second = branch_coverage(pair.first, old, found.sample), branch_coverage(pair.second, new, found.sample)
    return Verification(found, first, second, 0 if host.objects is None else len(host.objects))


def _operations(new: Sequence[JSONObject]) -> tuple[Operation, ...]:
    """Return the operations to try: controllers, not reviews, decide what a deletion means for generated objects."""
    generates = any(str(each.get("kind", "")).endswith("GeneratingPolicy") for each in new)
    return _OPERATIONS[:2] if generates else _OPERATIONS


def host_of(
    documents: Sequence[JSONObject], vocabulary: Vocabulary, admit: Admit, given: Sequence[JSONObject]
) -> OfflineHost:
    """Return a host with the cluster that the policies read: given objects, and generated ones of the same kinds."""
    reads = cluster_reads(documents)
    if not reads:
        return OfflineHost()
    store = ObjectStore(cluster_objects(reads, vocabulary, admit, given))
    return OfflineHost(objects=store, targets=store)


def _engine(documents: Sequence[JSONObject], host: OfflineHost) -> Engine:
    compilation = compile_documents(Document(body, "-", index) for index, body in enumerate(documents))
    raise_all(compilation.errors)
    return Engine(PolicySet(compilation.policies, compilation.exceptions, asks_all=True), host)


def digest(documents: Sequence[JSONObject]) -> str:
    """Return the digest by which `pyverno equivalent --check` recognizes the policies of a side."""
    return hashlib.sha256("\n".join(sorted(encode(each) for each in documents)).encode()).hexdigest()


def certified(document: JSONObject, verification: Verification, settings: Settings) -> JSONObject:
    """Return a converted policy with the comparison's summary as an annotation."""
    metadata = dict(document["metadata"])
    annotations = {**(metadata.get("annotations") or {}), CERTIFICATE: _summary(verification, settings)}
    return {**document, "metadata": {**metadata, "annotations": annotations}}


def _summary(verification: Verification, settings: Settings) -> str:
    comparison = verification.comparison
    total = sum(comparison.requests.values())
    tried = f"{total} requests, seed {settings.seed}, admitted by Kubernetes {settings.kube_version}"
    if comparison.counterexample is not None:
        return f"differs; found among {tried}; pyverno {__version__}"
    if comparison.blind:
        return f"void, {'; '.join(comparison.blind)}; {tried}; pyverno {__version__}"
    verdicts = "; ".join(
        f"{name} side "
        + ", ".join(f"{count} {word}" for word, count in sorted(side.items()))
        + f", {branches.taken} of {branches.total} branches"
        for name, side, branches in (
            ("old", comparison.first, verification.old),
            ("new", comparison.second, verification.new),
        )
    )
    return f"no difference found in {tried}; {verdicts}; pyverno {__version__}"


def record_of(
    sides: tuple[tuple[str, Sequence[JSONObject]], tuple[str, Sequence[JSONObject]]],
    verification: Verification,
    settings: Settings,
) -> JSONObject:
    """Return the record of a comparison in the form of `pyverno equivalent --certificate`."""
    comparison = verification.comparison
    counts = (comparison.first, verification.old), (comparison.second, verification.new)
    old, new = (
        {
            "source": source,
            "sha256": digest(documents),
            "verdicts": dict(sorted(verdicts.items())),
            "branches": branches.to_json(),
        }
        for (source, documents), (verdicts, branches) in zip(sides, counts, strict=True)
    )
    return {
        "tool": f"pyverno {__version__}",
        "old": old,
        "new": new,
        "seed": settings.seed,
        "objects": settings.objects,
        "kubeVersion": settings.kube_version,
        "domain": "objects as an API server admits them: decoded, with defaults, valid",
        "inputs": dict(comparison.inputs),
        **({"clusterObjects": verification.cluster} if verification.cluster else {}),
        "requests": dict(sorted(comparison.requests.items())),
        "refusedByTheSchema": comparison.refused,
        **raw_differences(comparison),
        "saysNothingBecause": list(comparison.blind) if comparison.counterexample is None else [],
        "result": "different" if comparison.counterexample is not None else "no difference found",
    }


def raw_differences(comparison: Comparison) -> JSONObject:
    """Return the differences on objects as they are written, which an API server completes or refuses; {} if none."""
    if not comparison.raw_differences:
        return {}
    counts = {"judged": comparison.raw_judged, "different": comparison.raw_differences, "smallest": comparison.raw}
    return {"beforeAdmission": counts}
