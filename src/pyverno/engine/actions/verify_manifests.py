"""`validate.manifests`: the object equals the signed manifest, and the attestors of the rule signed it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyverno.engine.actions.exemption import SkippedByException
from pyverno.engine.result import Status, Verdict
from pyverno.engine.rule import Run
from pyverno.errors import PyvernoError, SubstitutionError, VerificationError
from pyverno.images.manifests.compare import IgnoredFields, difference, same_object
from pyverno.images.manifests.signed import DEFAULT_DOMAIN, MANIFEST, SignedManifest, read_signed_manifest
from pyverno.images.verification.attestorsets import Trust, UnresolvedSet, read_attestor_sets
from pyverno.images.verification.counting import SetFinding
from pyverno.images.verification.verify import Expected, verify_set
from pyverno.kube.json import JSON, JSONObject, encode
from pyverno.lang.template import Template
from pyverno.value import dataclass

__all__ = ["VerifyManifests", "read_manifest_attestors"]

_NANOSECONDS: Final = 1_000_000_000
_MAX_SHOWN: Final = 20
_BYTES_PER_STEP: Final = 16


@dataclass(frozen=True, slots=True)
class VerifyManifests(SkippedByException):
    """Compares an object with the manifest that it carries, and verifies the signatures over that.

    `attestors` are read from `document` when the policy is compiled, unless it has variables (None).
    """

    document: Template
    attestors: tuple[UnresolvedSet, ...] | None
    ignored: tuple[IgnoredFields, ...] = ()
    domain: str = DEFAULT_DOMAIN

    def run(self, run: Run) -> Sequence[Verdict]:
        """Return one verdict; a request that is itself a dry run passes, as in Kyverno."""
        resource = run.resource
        if not isinstance(resource, dict):
            return ()
        if run.request.dry_run:
            return (Verdict(Status.PASS, "allowed because of DryRun request"),)
        try:
            return (self._judge(run, resource),)
        except VerificationError as error:
            return (Verdict(Status.FAIL, f"manifest verification failed: {error.message}"),)
        except SubstitutionError as error:
            return (Verdict(Status.ERROR, f"failed to substitute variables: {error.message}"),)
        except PyvernoError as error:
            return (Verdict(Status.ERROR, f"error occurred during manifest verification: {error.message}"),)

    def _judge(self, run: Run, resource: JSONObject) -> Verdict:
        annotations = (resource.get("metadata") or {}).get("annotations") or {}
        texts = {str(name): text for name, text in annotations.items() if isinstance(text, str)}
        budget = run.runtime.budget
        budget.charge_bytes(sum(map(len, texts.values())))
        signed = read_signed_manifest(texts, self.domain, meter=budget)
        if signed is None or not signed.signatures:
            raise VerificationError("the object carries no signature")
        changed = self._difference(run, signed, resource)
        expected = Expected(signed.digest, MANIFEST, run.runtime.host.now() // _NANOSECONDS)
        trust = Trust(run.broker.trust_root, run.broker.public_key)
        passed = []
        for each in self._sets(run):
            found = verify_set(each.resolve(trust), signed.signatures, expected, budget.check_deadline)
            if not found.passes or changed:
                return Verdict(Status.FAIL, _failed(found, changed))
            passed.append(_passed(found))
        return Verdict(Status.PASS, f"verified manifest signatures; {','.join(passed)}")

    def _sets(self, run: Run) -> tuple[UnresolvedSet, ...]:
        if self.attestors is not None:
            return self.attestors
        document = self.document.render(run.scope, run.runtime, delete_request=run.is_delete)
        return read_manifest_attestors(document)

    def _difference(self, run: Run, signed: SignedManifest, resource: JSONObject) -> Sequence[str]:
        """Return the smallest difference to a document that names the object; raises VerificationError without one."""
        found: Sequence[str] | None = None
        for each in signed.documents:
            if not same_object(each, resource):
                continue
            run.runtime.budget.charge_bytes(len(encode(each)) + len(encode(resource)), per_step=_BYTES_PER_STEP)
            changed = difference(each, resource, self.ignored, self.domain)
            if found is None or len(changed) < len(found):
                found = changed
        if found is None:
            raise VerificationError("the signed manifest does not hold this object")
        return found


def read_manifest_attestors(document: JSON) -> tuple[UnresolvedSet, ...]:
    """Read `attestors` of a rule; raises VerificationError.

    Keys and certificates need no transparency log unless the entry has a key of one, as in Kyverno; signatures without
    either need the whole proof.
    """
    found = read_attestor_sets(_without_logs(document), ".attestors")
    if not found:
        raise VerificationError(".attestors must have at least one entry")
    return found


def _without_logs(value: JSON) -> JSON:
    if isinstance(value, list):
        return [_without_logs(each) for each in value]
    if not isinstance(value, dict):
        return value
    found = {name: _without_logs(each) for name, each in value.items() if name in ("entries", "attestor")}
    for name in ("keys", "certificates"):
        own = value.get(name)
        if isinstance(own, dict):
            if "-----BEGIN PGP" in str(own.get("publicKeys")):
                raise VerificationError("PGP keys are not supported: sign manifests with a key of cosign")
            found[name] = {**own, **_log(own, "rekor", "ignoreTlog"), **_log(own, "ctlog", "ignoreSCT")}
    return {**value, **found}


def _log(own: JSONObject, field: str, switch: str) -> JSONObject:
    log = own.get(field) or {}
    if not isinstance(log, dict) or log.get("pubkey"):
        return {}
    return {field: {**log, switch: True}}


def _failed(found: SetFinding, changed: Sequence[str]) -> str:
    count = f"manifest verification failed; verifiedCount {found.verified}; requiredCount {found.required}"
    problems = "; ".join(found.problems) or f"{found.path}: failed to verify signature."
    if changed:
        # values stay out of the text: those of Secrets would be shown to readers of events and reports
        listed = encode({"items": [{"key": each} for each in changed[:_MAX_SHOWN]]})
        problems = (
            f"{problems if found.problems else found.path + ':'} failed to verify signature. diff found; {listed}"
        )
    return f"{count}; message {problems}"


def _passed(found: SetFinding) -> str:
    signers = [
        entry.detail
        for each in found.findings
        if each.ledger.passes
        for entry in each.ledger.entries
        if entry.constraint == "identity"
    ]
    count = f"verifiedCount {found.verified}; requiredCount {found.required}"
    text = f"manifest verification succeeded; {count}; message singed by a valid signer: {', '.join(signers)}"
    return text.rstrip()
