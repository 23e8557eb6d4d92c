"""Verification of one image for the command line: what is demanded, what was found, and the ledger of each check."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from pyverno.cli.errors import Exit
from pyverno.cli.registries import own_credentials
from pyverno.engine.imagesource import ImageAccess, ResolvedImage, SignatureQuery, answer_of
from pyverno.engine.imageverification.demands import read_demands
from pyverno.errors import UsageError, VerificationError
from pyverno.images.verification.attestors import Attestor
from pyverno.images.verification.attestorsets import Trust, UnresolvedSet, read_attestor_sets
from pyverno.images.verification.certificates import read_certificates
from pyverno.images.verification.ledger import Ledger
from pyverno.images.verification.notary.envelope import read_notary
from pyverno.images.verification.notary.verify import NotaryAttestor, NotaryTarget, verify_notary
from pyverno.images.verification.payloads import IMAGE_SIGNATURE, predicate_type_of
from pyverno.images.verification.signature import (
    Signature,
    read_attestation_layer,
    read_bundle,
    read_signature_layer,
)
from pyverno.images.verification.stored import SignatureForm, StoredSignature
from pyverno.images.verification.trust import TrustRoot, read_trust_root
from pyverno.images.verification.verify import Expected, verify_set
from pyverno.kube.imageref import parse_reference
from pyverno.kube.json import JSONObject
from pyverno.kube.wildcard import match
from pyverno.kube.yaml.documents import load_documents
from pyverno.registry.images import BlockingImages
from pyverno.registry.loopthread import OwnRegistryImages
from pyverno.registry.transport import RegistrySettings
from pyverno.value import dataclass, field

__all__ = ["VerifyOptions", "run_verify"]

_SIGNATURES = (SignatureForm.SIGNATURE_TAG, SignatureForm.BUNDLE)
_ATTESTATIONS = (SignatureForm.ATTESTATION_TAG, SignatureForm.BUNDLE)


@dataclass(frozen=True, slots=True)
class VerifyOptions:
    """The image, and the flags of the command."""

    image: str
    keys: tuple[str, ...] = ()
    subject: str = ""
    issuer: str = ""
    store: str = ""
    policies: tuple[str, ...] = ()
    trust_root: str = ""
    ignore_tlog: bool = False
    attestation: str = ""
    allows_http: bool = False
    output: str = "text"


@dataclass(frozen=True, slots=True)
class _Outcome:
    """One demand: whether it is met, why not, and the ledgers of what was tried."""

    demand: str
    passes: bool
    problems: tuple[str, ...] = ()
    checks: tuple[tuple[str, Ledger], ...] = field(default=())

    def to_json(self) -> JSONObject:
        checks = [
            {"attestor": path, "passes": ledger.passes, "entries": [each.to_json() for each in ledger.entries]}
            for path, ledger in self.checks
        ]
        return {"demand": self.demand, "passes": self.passes, "problems": list(self.problems), "checks": checks}


def run_verify(options: VerifyOptions) -> None:
    """Verify an image and print what was checked; ends with exit code 1 unless everything is verified."""
    root = read_trust_root(_read(options.trust_root)) if options.trust_root else None
    settings = RegistrySettings(allows_http=options.allows_http)
    with OwnRegistryImages(own_credentials(), settings=settings) as own:
        image = answer_of(own.source.resolve([(options.image, ImageAccess())])[0])
        found = list(_Verification(options, own.source, image, root).outcomes())
    if not found:
        raise UsageError("no attestor is given: use --key, --certificate-identity or --policy")
    _print(options, image, found)
    if not all(each.passes for each in found):
        raise Exit(1)


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None


class _Verification:
    def __init__(
        self, options: VerifyOptions, source: BlockingImages, image: ResolvedImage, root: TrustRoot | None
    ) -> None:
        self._options = options
        self._source = source
        self._image = image
        self._root = root
        self._trust = Trust(self._trusted, source.public_key)
        self._now = int(time.time())
        self._repository = parse_reference(options.image).repository

    def _trusted(self) -> TrustRoot:
        if self._root is None:
            raise UsageError("--trust-root is needed, or --ignore-tlog for keys")
        return self._root

    def outcomes(self) -> Iterator[_Outcome]:
        """Yield what each demand found."""
        predicate = predicate_type_of(self._options.attestation)
        for title, sets in self._sets():
            for each in sets:
                yield self._held(title, each, predicate)
        if self._options.store:
            yield self._notary()
        for path in self._options.policies:
            yield from self._policy(path)

    def _sets(self) -> Iterator[tuple[str, tuple[UnresolvedSet, ...]]]:
        for path in self._options.keys:
            entry: JSONObject = {"publicKeys": _read(path).decode("utf-8", "replace")}
            entry["rekor"] = {"ignoreTlog": self._options.ignore_tlog}
            yield f"--key {path}", read_attestor_sets([{"entries": [{"keys": entry}]}], "")
        if self._options.subject or self._options.issuer:
            keyless = {"keyless": {"subject": self._options.subject, "issuer": self._options.issuer}}
            yield "--certificate-identity", read_attestor_sets([{"entries": [keyless]}], "")

    def _held(self, title: str, written: UnresolvedSet, predicate: str) -> _Outcome:
        expected = Expected(self._image.digest, predicate or IMAGE_SIGNATURE, self._now)
        problems: list[str] = []

        def signatures(entry: Attestor) -> list[Signature]:
            found = []
            for form in _ATTESTATIONS if predicate else _SIGNATURES:
                for stored in self._stored(form, entry.repository):
                    try:
                        found.append(_READERS[form](stored))
                    except VerificationError as error:
                        problems.append(error.message)
            return found

        result = verify_set(written.resolve(self._trust), signatures, expected)
        checks = tuple((each.attestor.path, each.ledger) for each in result.findings)
        return _Outcome(title, result.passes, () if result.passes else (*result.problems, *problems), checks)

    def _stored(self, form: SignatureForm, repository: str = "") -> tuple[StoredSignature, ...]:
        query = SignatureQuery(repository or self._repository, self._image.digest, form, ImageAccess())
        return answer_of(self._source.signatures([query])[0])

    def _notary(self) -> _Outcome:
        title = f"--notary-certificate {self._options.store}"
        store = read_certificates(_read(self._options.store).decode("utf-8", "replace"))
        attestor = NotaryAttestor(title, store)
        target = NotaryTarget(self._image.digest, self._image.size, self._now, self._image.media_type)
        ledgers, problems = [], []
        for each in self._stored(SignatureForm.NOTARY):
            try:
                envelope = read_notary(each.blob, each.media_type)
                ledgers.append(verify_notary(attestor, envelope, target, self._source.revocation))
            except VerificationError as error:
                problems.append(error.message)
        good = next((each for each in ledgers if each.passes), None)
        if good is not None:
            return _Outcome(title, True, (), ((title, good),))
        problems += [each.problem for each in ledgers]
        return _Outcome(
            title, False, tuple(problems or ["no signatures found"]), tuple((title, each) for each in ledgers)
        )

    def _policy(self, path: str) -> Iterator[_Outcome]:
        for document in load_documents(_read(path), file=path):
            spec = document.value.get("spec") if isinstance(document.value, dict) else None
            for rule in (spec or {}).get("rules") or ():
                for entry in rule.get("verifyImages") or ():
                    if any(match(pattern, self._options.image) for pattern in entry.get("imageReferences") or ()):
                        yield from self._entry(f"{path}: rule {rule.get('name')}", entry)

    def _entry(self, title: str, entry: JSONObject) -> Iterator[_Outcome]:
        attestations = entry.get("attestations") or []
        if any(each.get("conditions") for each in attestations) or entry.get("key") or entry.get("issuer"):
            raise UsageError(f"{title} has conditions or fields of older policies: use `pyverno apply --registry`")
        if entry.get("type") == "Notary":
            raise UsageError(f"{title} has the type Notary: use --notary-certificate")
        fields = ("attestors", "attestations", "repository")
        demands = read_demands({name: entry[name] for name in fields if name in entry})
        for each in demands.attestors:
            yield self._held(title, each, "")
        for attestation in demands.attestations:
            for each in attestation.attestors:
                yield self._held(f"{title}: attestation {attestation.type}", each, attestation.type)


_READERS = {
    SignatureForm.SIGNATURE_TAG: lambda stored: read_signature_layer(stored.blob, stored.annotations),
    SignatureForm.ATTESTATION_TAG: lambda stored: read_attestation_layer(stored.blob, stored.annotations),
    SignatureForm.BUNDLE: lambda stored: read_bundle(stored.blob),
}


def _print(options: VerifyOptions, image: ResolvedImage, found: list[_Outcome]) -> None:
    if options.output == "json":
        body = {
            "image": options.image,
            "digest": image.digest,
            "verified": all(each.passes for each in found),
            "demands": [each.to_json() for each in found],
        }
        sys.stdout.write(json.dumps(body, indent=2) + "\n")
        return
    sys.stdout.write(f"{options.image}\n{image.digest}\n")
    for outcome in found:
        sys.stdout.write(f"\n{'verified' if outcome.passes else 'NOT verified'}: {outcome.demand}\n")
        for problem in outcome.problems:
            sys.stdout.write(f"  problem: {problem}\n")
        for path, ledger in outcome.checks:
            sys.stdout.write(f"  {path or 'signature'}\n" if len(outcome.checks) > 1 else "")
            for entry in ledger.entries:
                detail = f": {entry.detail}" if entry.detail else ""
                sys.stdout.write(f"  {entry.state.value:<7}{entry.constraint}{detail}\n")
