"""Verification of one image for the command line: demands, verdicts, and the ledger of each check."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from pyverno.cli.errors import Exit
from pyverno.cli.terminal import STDOUT
from pyverno.cli.verify.reviews import PodReviews
from pyverno.errors import HostUnavailableError, UsageError
from pyverno.images.verification.payloads import predicate_type_of
from pyverno.images.verification.trust import TrustRoot, read_trust_root
from pyverno.registry.owncredentials import own_credentials
from pyverno.registry.ownimages import OwnRegistryImages
from pyverno.registry.policydemands import check_policies
from pyverno.registry.transport import RegistrySettings
from pyverno.registry.verification import DemandVerdict, ImageChecks, ImageVerdict, key_entry, keyless_entry
from pyverno.value import dataclass

# trust rows: named-file

__all__ = ["VerifyOptions", "run_verify"]


_MISSING_ROOT = "--trust-root is needed, or --ignore-tlog for keys"


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


def run_verify(options: VerifyOptions) -> None:
    """Verify an image and print every check; ends with exit code 1 unless every demand is met."""
    root = read_trust_root(_read(options.trust_root)) if options.trust_root else None
    settings = RegistrySettings(allows_http=options.allows_http)

    def trusted() -> TrustRoot:
        if root is None:
            raise HostUnavailableError("no authorities and logs are trusted: --trust-root is needed")
        return root

    with OwnRegistryImages(own_credentials(), trust_root=trusted, settings=settings) as own:
        checks = ImageChecks(options.image, own.source, root, _MISSING_ROOT)
        pinned = options.image if "@" in options.image else f"{options.image}@{checks.image.digest}"
        found = tuple(_check_demands(options, checks, PodReviews(own.source, pinned)))
    if not found:
        raise UsageError("no attestor is given: use --key, --certificate-identity or --policy")
    verdict = ImageVerdict(options.image, checks.image.digest, found)
    _print(options, verdict)
    if not verdict.verified:
        raise Exit(1)


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None


def _read_key(name: str) -> str:
    """Return the PEM of a file, or the name of a key in a key management system."""
    if "://" in name:
        return name
    text = _read(name).decode("utf-8", "replace")
    if "-----BEGIN" not in text:
        raise UsageError(f"--key {name}: the file holds no public key (PEM)")
    return text


def _check_demands(options: VerifyOptions, checks: ImageChecks, reviews: PodReviews) -> Iterator[DemandVerdict]:
    """Yield the verdict on each demand of the flags."""
    predicate = predicate_type_of(options.attestation)
    for name in options.keys:
        for each in key_entry(_read_key(name), ignore_log=options.ignore_tlog):
            yield checks.check(f"--key {name}", each, predicate)
    if options.subject or options.issuer:
        for each in keyless_entry(options.subject, options.issuer):
            yield checks.check("--certificate-identity", each, predicate)
    if options.store:
        certificates = _read(options.store).decode("utf-8", "replace")
        yield checks.check_notary(f"--notary-certificate {options.store}", certificates)
    for path in options.policies:
        yield from check_policies(path, _read(path), options.image, checks, partial(reviews.verdicts, path))


def _print(options: VerifyOptions, verdict: ImageVerdict) -> None:
    if options.output == "json":
        STDOUT.write(json.dumps(verdict.to_json(), indent=2) + "\n")
        return
    STDOUT.write(f"{verdict.image}\n{verdict.digest}\n")
    for outcome in verdict.demands:
        STDOUT.write(f"\n{'verified' if outcome.passes else 'NOT verified'}: {outcome.demand}\n")
        for problem in outcome.problems:
            STDOUT.write(f"  problem: {problem}\n")
        for path, ledger in outcome.checks:
            STDOUT.write(f"  {path or 'signature'}\n" if len(outcome.checks) > 1 else "")
            for entry in ledger.entries:
                detail = f": {entry.detail}" if entry.detail else ""
                STDOUT.write(f"  {entry.state.value:<7}{entry.constraint}{detail}\n")
