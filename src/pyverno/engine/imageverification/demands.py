"""The demands of one entry of verifyImages: attestors of signatures, and attestations with theirs."""

from __future__ import annotations

import hashlib
from typing import Final

from pyverno.errors import VerificationError
from pyverno.images.verification.attestorfields import AttestorFields, read_items
from pyverno.images.verification.attestorsets import UnresolvedSet, read_attestor_sets
from pyverno.images.verification.payloads import predicate_type_of
from pyverno.kube.json import JSON, encode
from pyverno.value import dataclass

__all__ = ["AttestationDemand", "Demands", "read_demands"]

_MAX_ATTESTATIONS: Final = 100


@dataclass(frozen=True, slots=True)
class AttestationDemand:
    """One demanded attestation: its predicate type ("" if the policy has none), and the attestors that must sign it."""

    path: str
    name: str
    type: str
    attestors: tuple[UnresolvedSet, ...]


@dataclass(frozen=True, slots=True)
class Demands:
    """Everything that is demanded; `constraints` is a hash of it as it is written."""

    attestors: tuple[UnresolvedSet, ...]
    attestations: tuple[AttestationDemand, ...]
    constraints: str

    @property
    def is_empty(self) -> bool:
        """Whether nothing is demanded, so that there is nothing to verify."""
        return not self.attestors and not self.attestations

    @property
    def reads_cluster(self) -> bool:
        """Whether a key is an object of the cluster, which may change while its name stays."""
        sets = (*self.attestors, *(each for found in self.attestations for each in found.attestors))
        return any(each.reads_cluster for each in sets)


def read_demands(document: JSON) -> Demands:
    """Read `attestors`, `attestations` and `repository` of an entry; raises VerificationError.

    An attestation without attestors has those of the entry.
    """
    fields = AttestorFields(document, "")
    repository = fields.text("repository")
    attestors = read_attestor_sets(fields.take("attestors"), ".attestors", repository)
    found = []
    written_attestations = read_items(fields.take("attestations"), ".attestations")
    if len(written_attestations) > _MAX_ATTESTATIONS:
        raise VerificationError(f".attestations has {len(written_attestations)} items, at most {_MAX_ATTESTATIONS}")
    for index, each in enumerate(written_attestations):
        path = f".attestations[{index}]"
        own = AttestorFields(each, path)
        written = own.text("type") or own.text("predicateType")
        own.take("predicateType")
        sets = read_attestor_sets(own.take("attestors"), f"{path}.attestors", repository)
        found.append(AttestationDemand(path, own.text("name"), predicate_type_of(written), sets or attestors))
        own.finish()
    fields.finish()
    return Demands(attestors, tuple(found), hashlib.sha256(encode(document).encode()).hexdigest())
