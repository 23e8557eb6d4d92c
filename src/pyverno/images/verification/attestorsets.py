"""Attestor sets as rule policies write them (`attestors` of verifyImages), read into attestors.

Reading needs neither a trust root nor a cluster, so that a policy is checked when it is compiled; `resolve` adds both.
A field that no check would use is refused with its path: a constraint is never ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from pyverno.errors import PyvernoError, VerificationError
from pyverno.images.verification.attestorfields import AttestorFields, read_items
from pyverno.images.verification.attestors import (
    Attestor,
    AttestorSet,
    Identity,
    TextMatch,
    exact,
    expression,
    extension_identifier,
    wildcard,
)
from pyverno.images.verification.certificates import Certificate, read_certificate, read_certificates
from pyverno.images.verification.keys import HASHES, KMS_SCHEMES, PublicKey, pem_blocks, read_key, read_keys
from pyverno.images.verification.trust import Authority, TransparencyLog, TrustRoot
from pyverno.kube.json import JSON
from pyverno.value import dataclass, field, replace

__all__ = ["Trust", "UnresolvedAttestor", "UnresolvedSet", "read_attestor_sets"]

_MAX_DEPTH: Final = 8
_MAX_ENTRIES: Final = 100


@dataclass(frozen=True, slots=True)
class Trust:
    """The trust of an installation, for policies without their own: the trust root, and keys by reference."""

    root: Callable[[], TrustRoot]
    public_key: Callable[[str], str]


Make = Callable[[Trust], Attestor]


@dataclass(frozen=True, slots=True)
class UnresolvedAttestor:
    """An attestor before its trust is resolved; with `reads_cluster` its key is an object of the cluster."""

    path: str
    make: Make
    reads_cluster: bool = False


@dataclass(frozen=True, slots=True)
class UnresolvedSet:
    """A set of attestors before their trust is resolved."""

    path: str
    entries: tuple[UnresolvedAttestor | UnresolvedSet, ...]
    count: int

    @property
    def reads_cluster(self) -> bool:
        """Whether a key of the set is an object of the cluster."""
        return any(each.reads_cluster for each in self.entries)

    def resolve(self, trust: Trust) -> AttestorSet:
        """Return the attestors; raises VerificationError, and what `trust` raises."""
        entries = tuple(
            each.resolve(trust) if isinstance(each, UnresolvedSet) else each.make(trust) for each in self.entries
        )
        return AttestorSet(self.path, entries, self.count)


def read_attestor_sets(document: JSON, path: str, repository: str = "") -> tuple[UnresolvedSet, ...]:
    """Read a list of attestor sets that is at `path`; raises VerificationError with the path of the invalid field.

    >>> read_attestor_sets([{"count": 2, "entries": [{"keyless": {"issuer": "i"}}]}], ".attestors")
    Traceback (most recent call last):
    pyverno.errors.VerificationError: .attestors[0].count is 2, but there are 1 entries
    """
    return tuple(
        _read_set(each, f"{path}[{index}]", repository) for index, each in enumerate(read_items(document, path))
    )


def _read_set(body: JSON, path: str, repository: str, depth: int = 0) -> UnresolvedSet:
    if depth > _MAX_DEPTH:
        raise VerificationError(f"{path} is nested more than {_MAX_DEPTH} times")
    fields = AttestorFields(body, path)
    count = fields.count("count")
    entries: list[UnresolvedAttestor | UnresolvedSet] = []
    for each in read_items(fields.take("entries"), f"{path}.entries"):
        # Kyverno counts the keys of one text as entries of their own
        entries.extend(_read_entry(each, path, len(entries), repository, depth))
    fields.finish()
    if not entries or len(entries) > _MAX_ENTRIES:
        raise VerificationError(f"{path}.entries must have 1 to {_MAX_ENTRIES} entries")
    if count > len(entries):
        raise VerificationError(f"{path}.count is {count}, but there are {len(entries)} entries")
    return UnresolvedSet(path, tuple(entries), count or len(entries))


def _read_entry(
    body: JSON, parent: str, index: int, repository: str, depth: int
) -> tuple[UnresolvedAttestor | UnresolvedSet, ...]:
    path = f"{parent}.entries[{index}]"
    fields = AttestorFields(body, path)
    own = _Own(
        annotations={name: exact(text) for name, text in fields.texts("annotations").items()},
        repository=fields.text("repository") or repository,
        algorithm=_algorithm(fields, ""),
    )
    ways = {name: found for name in _WAYS if (found := fields.object(name)) is not None}
    fields.finish()
    if len(ways) != 1:
        raise VerificationError(f"{path} must have exactly one of {', '.join(_WAYS)}")
    way, inner = next(iter(ways.items()))
    if way == "attestor":
        if own.annotations:
            raise VerificationError(f"{path}.annotations cannot be demanded of a set: name them in its entries")
        return (_read_set(inner.body, inner.path, own.repository, depth + 1),)
    made = _READERS[way](inner, own)
    inner.finish()
    if len(made) == 1:
        return (UnresolvedAttestor(inner.path, made[0], _names_object(inner.body)),)
    return tuple(_place(make, f"{parent}.entries[{index + offset}].{way}") for offset, make in enumerate(made))


def _place(make: Make, path: str) -> UnresolvedAttestor:
    return UnresolvedAttestor(path, lambda trust: replace(make(trust), path=path))


@dataclass(frozen=True, slots=True)
class _Own:
    """The fields of an entry beside its authority."""

    annotations: Mapping[str, TextMatch] = field(default_factory=dict)
    repository: str = ""
    algorithm: str = ""


@dataclass(frozen=True, slots=True)
class _Logs:
    """The demanded logs and time stamps."""

    log_required: bool
    log_keys: tuple[PublicKey, ...]
    certificate_log_required: bool
    certificate_log_keys: tuple[PublicKey, ...]
    time_chain: tuple[Certificate, ...]

    def logs(self, trust: Trust) -> tuple[TransparencyLog, ...]:
        if not self.log_required:
            return ()
        return tuple(map(TransparencyLog.of_key, self.log_keys)) or trust.root().logs

    def certificate_logs(self, trust: Trust) -> tuple[TransparencyLog, ...]:
        if not self.certificate_log_required:
            return ()
        return tuple(map(TransparencyLog.of_key, self.certificate_log_keys)) or trust.root().certificate_logs

    def time_authorities(self) -> tuple[Authority, ...]:
        return (Authority(self.time_chain),) if self.time_chain else ()


def _read_logs(fields: AttestorFields) -> _Logs:
    rekor, ctlog = fields.object("rekor"), fields.object("ctlog")
    log_required = certificate_required = True
    log_keys: tuple[PublicKey, ...] = ()
    certificate_keys: tuple[PublicKey, ...] = ()
    chain: tuple[Certificate, ...] = ()
    if rekor is not None:
        rekor.text("url")  # where entries are looked up online; ours come with the signature and are checked by key
        log_required = not rekor.flag("ignoreTlog")
        log_keys = _keys(rekor, "pubkey")
        rekor.finish()
    if ctlog is not None:
        certificate_required = not ctlog.flag("ignoreSCT")
        certificate_keys = _keys(ctlog, "pubkey")
        text = ctlog.text("tsaCertChain")
        chain = read_certificates(text, f"{ctlog.path}.tsaCertChain") if text else ()
        ctlog.finish()
    return _Logs(log_required, log_keys, certificate_required, certificate_keys, chain)


def _keys(fields: AttestorFields, name: str) -> tuple[PublicKey, ...]:
    text = fields.text(name)
    return tuple(read_keys(text, f"{fields.path}.{name}")) if text else ()


def _algorithm(fields: AttestorFields, default: str = "sha256") -> str:
    found = fields.text("signatureAlgorithm") or default
    if found and found not in HASHES:
        raise VerificationError(f"{fields.path}.signatureAlgorithm must be one of {', '.join(HASHES)}")
    return found


# --------------------------------------------------------------------------------------------------------- authorities


def _names_object(body: JSON) -> bool:
    """Return whether a key is a reference: the key behind it may change while the reference stays."""
    if not isinstance(body, dict):
        return False
    text = str(body.get("publicKeys") or "").strip()
    return bool(body.get("secret") or body.get("kms")) or text.startswith(("k8s://", *KMS_SCHEMES))


def _read_keys_entry(fields: AttestorFields, own: _Own) -> tuple[Make, ...]:
    text, kms, secret = fields.text("publicKeys").strip(), fields.text("kms"), fields.object("secret")
    algorithm = _algorithm(fields, own.algorithm or "sha256")
    logs = _read_logs(fields)
    if logs.certificate_log_keys:
        raise VerificationError(f"{fields.path}.ctlog.pubkey is for certificates, and a key has none")
    if bool(text) + bool(kms) + (secret is not None) != 1:
        raise VerificationError(f"{fields.path} must have exactly one of publicKeys, kms and secret")
    text = text or kms
    if text and not text.startswith(("-----BEGIN", "k8s://", *KMS_SCHEMES)):
        raise VerificationError(
            f"{fields.path} names a key of a key management system that is not supported: write its public key as PEM"
        )
    reference = text if text.startswith(("k8s://", *KMS_SCHEMES)) else ""
    if secret is not None:
        reference = f"k8s://{secret.text('namespace')}/{secret.text('name')}"
        secret.finish()

    def made(read: Callable[[Trust], PublicKey]) -> Make:
        return lambda trust: Attestor(
            fields.path,
            key=read(trust),
            hash_name=algorithm,
            annotations=own.annotations,
            log_required=logs.log_required,
            logs=logs.logs(trust),
            timestamp_required=bool(logs.time_chain),
            time_authorities=logs.time_authorities(),
            repository=own.repository,
        )

    if reference:
        what = f"{fields.path}: the key of `{reference}`"
        return (made(lambda trust: read_key(trust.public_key(reference).encode(), what)),)
    blocks = pem_blocks(text, f"{fields.path}.publicKeys")
    if not blocks:
        raise VerificationError(f"{fields.path}.publicKeys holds no PEM block")
    keys = [read_key(block.encode(), f"{fields.path}.publicKeys") for _, block in blocks]
    return tuple(made(lambda _, key=key: key) for key in keys)  # type: ignore[misc]


def _read_certificates_entry(fields: AttestorFields, own: _Own) -> tuple[Make, ...]:
    cert, chain = fields.text("cert"), fields.text("certChain")
    logs = _read_logs(fields)
    if not cert and not chain:
        raise VerificationError(f"{fields.path} must have cert or certChain")
    leaf = read_certificate(cert.encode(), f"{fields.path}.cert") if cert else None
    authorities = (Authority(read_certificates(chain, f"{fields.path}.certChain")),) if chain else ()
    return (
        lambda trust: Attestor(
            fields.path,
            certificate=leaf,
            authorities=authorities,
            annotations=own.annotations,
            log_required=logs.log_required,
            logs=logs.logs(trust),
            certificate_log_required=logs.certificate_log_required,
            certificate_logs=logs.certificate_logs(trust) if authorities else (),
            timestamp_required=bool(logs.time_chain),
            time_authorities=logs.time_authorities(),
            repository=own.repository,
        ),
    )


def _read_keyless_entry(fields: AttestorFields, own: _Own) -> tuple[Make, ...]:
    issuers = _matches(fields, "issuer", "issuerRegExp")
    subjects = _matches(fields, "subject", "subjectRegExp")
    roots = fields.text("roots")
    extensions = {name: wildcard(text) for name, text in fields.texts("additionalExtensions").items()}
    for name in extensions:
        extension_identifier(name)
    logs = _read_logs(fields)
    if not issuers and not subjects and not roots:
        raise VerificationError(f"{fields.path} must have an issuer or a subject: without, every signature counts")
    own_roots = (Authority(read_certificates(roots, f"{fields.path}.roots")),) if roots else ()

    def make(trust: Trust) -> Attestor:
        authorities = own_roots or trust.root().authorities
        if not authorities:
            raise VerificationError(f"{fields.path}: the trusted root has no certificate authority")
        return Attestor(
            fields.path,
            authorities=authorities,
            identities=(Identity(subjects, issuers),) if subjects or issuers else (),
            extensions=extensions,
            annotations=own.annotations,
            log_required=logs.log_required,
            logs=logs.logs(trust),
            certificate_log_required=logs.certificate_log_required,
            certificate_logs=logs.certificate_logs(trust),
            timestamp_required=bool(logs.time_chain),
            time_authorities=logs.time_authorities() or (() if own_roots else trust.root().time_authorities),
            repository=own.repository,
        )

    return (make,)


def _matches(fields: AttestorFields, plain: str, regular: str) -> tuple[TextMatch, ...]:
    text, pattern = fields.text(plain), fields.text(regular)
    found = (wildcard(text),) if text else ()
    if not pattern:
        return found
    try:
        return (*found, expression(pattern))
    except PyvernoError as error:
        raise VerificationError(f"{fields.path}.{regular}: {error.message}") from None


_WAYS: Final = ("keys", "certificates", "keyless", "attestor")
_READERS: Final[Mapping[str, Callable[[AttestorFields, _Own], tuple[Make, ...]]]] = {
    "keys": _read_keys_entry,
    "certificates": _read_certificates_entry,
    "keyless": _read_keyless_entry,
}
