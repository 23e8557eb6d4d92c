"""Compare verdicts on Sigstore bundles with those of the Python library of Sigstore.

`python -m tests.differential.sigstore ASSETS STORE` needs that library (sigstore 4), the folder `test/assets` of its
repository, and a folder with `production.json` and `staging.json`, the trusted roots that it ships. Every bundle is
held against each root with its own file and identity, with another file, with another identity and with another
issuer; then as many mutated bundles of our own authority as `--mutations` names. The library judges keyless bundles
only.
"""

from __future__ import annotations

import argparse
import importlib
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyverno.errors import PyvernoError
from pyverno.images.verification.attestors import Attestor, Identity, exact
from pyverno.images.verification.certificates import issuer_of, subjects_of
from pyverno.images.verification.payloads import IMAGE_SIGNATURE, Payload
from pyverno.images.verification.signature import Signature, read_bundle
from pyverno.images.verification.strictjson import decode_base64, read_object
from pyverno.images.verification.trust import read_trust_root
from pyverno.images.verification.verify import Expected, verify
from tests.authority.signing import SigningServices
from tests.property.test_image_documents import mutate

SERVICES = SigningServices(now=int(time.time()) - 300)
_PADDING = "Incorrect padding"
_DIGEST = "sha256:" + "ab" * 32


@dataclass(frozen=True)
class Question:
    """A bundle, the file that it signs, the required signer, and the trusted root."""

    bundle: bytes
    content: bytes
    identity: str
    issuer: str
    root: bytes
    demands_stamp: bool = False


Judge = Callable[[Question], str]
"""Returns why a bundle is refused, "" for one that is verified."""


def _ours(question: Question) -> str:
    root = read_trust_root(question.root)
    try:
        signature = _read(question)
    except PyvernoError as error:
        return error.message
    attestor = Attestor(
        ".keyless",
        authorities=root.authorities,
        identities=(Identity((exact(question.identity),), (exact(question.issuer),)),),
        logs=root.logs,
        certificate_logs=root.certificate_logs,
        time_authorities=root.time_authorities,
        timestamp_required=question.demands_stamp,
    )
    digest, *_ = sorted(signature.payload.digests) or [""]
    expected = Expected(digest, signature.payload.predicate_type, int(time.time()))
    return verify(attestor, signature, expected).ledger.problem


def _read(question: Question) -> Signature:
    """Read an envelope as images have it, or a signature of a file, which images refuse."""
    body = read_object(question.bundle, "the bundle")
    if isinstance(body.get("dsseEnvelope"), dict) or "messageSignature" not in body:
        return read_bundle(question.bundle)
    body["dsseEnvelope"] = SERVICES.keyed().bundle(_DIGEST)["dsseEnvelope"]
    read = read_bundle(json.dumps(body).encode())
    made = body["messageSignature"]
    assert isinstance(made, dict)
    signature = decode_base64(made.get("signature"), "the signature")
    return Signature(
        question.content,
        signature,
        Payload((_DIGEST,), IMAGE_SIGNATURE, {}),
        read.certificate,
        read.chain,
        read.log_entries,
        read.timestamps,
        is_bundle=True,
    )


def _library() -> Judge:
    """Return the judge that uses the sigstore library, which is no dependency of the project."""
    models, verifying = importlib.import_module("sigstore.models"), importlib.import_module("sigstore.verify")
    policies = importlib.import_module("sigstore.verify.policy")
    known: dict[bytes, Any] = {}

    def verifier(root: bytes) -> Any:
        if root not in known:
            with tempfile.NamedTemporaryFile(suffix=".json") as file:
                file.write(root)
                file.flush()
                known[root] = verifying.Verifier(trusted_root=models.TrustedRoot.from_file(file.name))
        return known[root]

    def judge(question: Question) -> str:
        policy = policies.Identity(identity=question.identity, issuer=question.issuer)
        try:
            bundle = models.Bundle.from_json(question.bundle)
            if bundle._dsse_envelope is not None:
                verifier(question.root).verify_dsse(bundle, policy)
            else:
                verifier(question.root).verify_artifact(question.content, bundle, policy)
        except Exception as error:
            return f"{type(error).__name__}: {error}"[:1000]
        return ""

    return judge


def _assets(folder: Path, store: Path) -> Iterator[tuple[str, Question]]:
    """Yield a question for each bundle, root and variant."""
    roots = {path.stem: path.read_bytes() for path in sorted(store.glob("*.json"))}
    stamping = json.loads((folder / "tsa/trust_config.json").read_bytes())
    roots["tsa"] = json.dumps(stamping["trustedRoot"]).encode()
    for path in sorted((*folder.rglob("*.sigstore"), *folder.rglob("*.sigstore.json"))):
        raw = path.read_bytes()
        try:
            certificate = _read(Question(raw, b"", "", "", b"")).certificate
            assert certificate is not None
            identity, issuer = subjects_of(certificate)[0], issuer_of(certificate)
        except (PyvernoError, AssertionError, IndexError):
            identity, issuer = "nobody@example.com", "https://example.com"
        content = _content(path)
        for name, root in roots.items():
            label = f"{path.relative_to(folder)} with the root {name}"
            yield label, Question(raw, content, identity, issuer, root)
            yield f"{label}, other identity", Question(raw, content, f"x{identity}", issuer, root)
            yield f"{label}, other issuer", Question(raw, content, identity, f"{issuer}x", root)
            yield f"{label}, other file", Question(raw, content + b"x", identity, issuer, root)


def _content(path: Path) -> bytes:
    """Return the file that a bundle signs: the one of its name, or that of the folder."""
    name = path.name.partition(".sigstore")[0]
    places = [path.with_name(name), path.with_name("bundle.txt")]
    return next((each.read_bytes() for each in places if each.is_file()), b"")


def _mutated(count: int) -> Iterator[tuple[str, Question]]:
    """Yield good bundles of our authority, and `count` mutated ones."""
    root, signer = SERVICES.trusted_root(), SERVICES.keyless("dev@example.com")
    made = [json.dumps(signer.bundle(_DIGEST, is_stamped=stamped)).encode() for stamped in (False, True)]
    for index in range(-len(made), count):  # the good ones first, every second one with a time stamp
        chance = random.Random(index)  # noqa: S311 - repeatable, no secret
        chosen = index % len(made)
        raw = made[chosen] if index < 0 else mutate(made[chosen], chance)
        question = Question(raw, b"", "dev@example.com", "https://accounts.example.com", root, bool(chosen))
        yield f"mutation {index}", question


def main(words: list[str] | None = None) -> int:
    """Print the counts and each difference; return 1 if ours verifies what the library refuses."""
    parser = argparse.ArgumentParser(prog="python -m tests.differential.sigstore")
    parser.add_argument("assets", type=Path)
    parser.add_argument("store", type=Path)
    parser.add_argument("--mutations", type=int, default=1000)
    flags = parser.parse_args(words)
    theirs, weaker = _library(), 0
    for title, questions in (("assets", _assets(flags.assets, flags.store)), ("mutations", _mutated(flags.mutations))):
        counts: Counter[str] = Counter()
        for name, question in questions:
            ours, library = _ours(question), theirs(question)
            if not ours and _PADDING in library:
                counts["verified by us, where the library refuses base64 without its padding"] += 1
                continue
            counts[("refused" if ours else "verified") + (" by both" if bool(ours) == bool(library) else " by us")] += 1
            if bool(ours) != bool(library):
                weaker += not ours
                print(f"{name}\n  ours: {ours or 'verified'}\n  library: {library[:200] or 'verified'}")
        print(f"{title}: {', '.join(f'{count} {what}' for what, count in sorted(counts.items()))}")
    return int(weaker > 0)


if __name__ == "__main__":
    sys.exit(main())
