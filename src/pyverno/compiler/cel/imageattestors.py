"""Lowering of the attestors of an ImageValidatingPolicy.

Keys and certificates may be expressions, so attestors are built when an expression first uses one. A field that nothing
would check makes the attestor an error, with its path.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyverno.compiler.cel.environment import CelCompiler
from pyverno.engine.cel.images import Evaluate, ImageAttestor
from pyverno.errors import PyvernoError, VerificationError
from pyverno.images.verification.attestors import (
    Attestor,
    Identity,
    TextMatch,
    exact,
    expression,
    extension_identifier,
)
from pyverno.images.verification.attestorsets import Trust
from pyverno.images.verification.certificates import read_certificate, read_certificates
from pyverno.images.verification.keys import HASHES, KMS_SCHEMES, read_key, read_keys
from pyverno.images.verification.trust import Authority, TransparencyLog, read_trust_root
from pyverno.lang.cel import types
from pyverno.policy.cel.blocks import Expression
from pyverno.policy.cel.imagepolicy import Attestor as WrittenAttestor
from pyverno.policy.cel.imagepolicy import Cosign, Ctlog, Given, Key, Notary, SignatureSource
from pyverno.policy.cel.imagepolicy import Identity as WrittenIdentity
from pyverno.value import replace

__all__ = ["lower_attestor"]

_Text = Callable[[Evaluate], str]


def lower_attestor(written: WrittenAttestor, compiler: CelCompiler) -> ImageAttestor:
    """Compile the expressions of an attestor; what does not compile is reported."""
    path = f"attestors.{written.name}"
    cosign, texts = written.cosign, _Texts(compiler)
    if cosign is None:
        return ImageAttestor(written.name, _notary(written.notary or Notary(), path, texts), is_notary=True)
    key = texts.of(cosign.key.data, cosign.key.expression) if cosign.key is not None else None
    certificate = cosign.certificate
    leaf = texts.given(certificate.cert) if certificate is not None else None
    chain = texts.given(certificate.cert_chain) if certificate is not None else None
    root = texts.given(cosign.trusted_root)
    subjects = [texts.of("", each.subject_expression) for each in cosign.keyless.identities] if cosign.keyless else []

    def build(evaluate: Evaluate, trust: Trust) -> Attestor:
        _refuse(cosign)
        found = read_trust_root(root(evaluate).encode()) if root is not None else None
        own = Trust((lambda: found) if found is not None else trust.root, trust.public_key)
        common = _common(cosign, path, own)
        if cosign.key is not None and key is not None:
            text = _kms_key(cosign.key, trust) if cosign.key.kms else key(evaluate)
            return replace(common, **_key_of(text, cosign.key.hash_algorithm, trust))
        if certificate is not None:
            cert = leaf(evaluate) if leaf is not None else ""
            certs = chain(evaluate) if chain is not None else ""
            return replace(
                common,
                certificate=read_certificate(cert.encode()) if cert else None,
                authorities=(Authority(read_certificates(certs)),) if certs else (),
                **_certificate_logs(cosign.ctlog, own, needed=bool(certs)),
            )
        if cosign.keyless is None:
            raise VerificationError("must have one of key, keyless and certificate")
        identities = tuple(
            _identity(each, subject(evaluate))
            for each, subject in zip(cosign.keyless.identities, subjects, strict=True)
        )
        roots = cosign.keyless.roots
        if not identities and not roots:
            raise VerificationError("keyless must have an identity: without, every signature counts")
        for name in cosign.keyless.additional_extensions:
            extension_identifier(name)
        return replace(
            common,
            authorities=(Authority(read_certificates(roots)),) if roots else own.root().authorities,
            identities=identities,
            extensions={name: exact(text) for name, text in cosign.keyless.additional_extensions.items()},
            time_authorities=common.time_authorities or (() if roots else own.root().time_authorities),
            **_certificate_logs(cosign.ctlog, own, needed=True),
        )

    return ImageAttestor(written.name, build)


def _notary(written: Notary, path: str, texts: _Texts) -> Callable[[Evaluate, Trust], Attestor]:
    """Return what makes a Notary attestor: the trust store, and the authorities whose time stamps count."""
    certs, stamps = texts.given(written.certs), texts.given(written.tsa_certs)

    def build(evaluate: Evaluate, _trust: Trust) -> Attestor:
        store = certs(evaluate) if certs is not None else ""
        if not store.strip():
            raise VerificationError("notary.certs must hold a certificate")
        chain = stamps(evaluate) if stamps is not None else ""
        return Attestor(
            path,
            authorities=(Authority(read_certificates(store)),),
            log_required=False,
            certificate_log_required=False,
            timestamp_required=bool(chain),
            time_authorities=(Authority(read_certificates(chain)),) if chain else (),
        )

    return build


class _Texts:
    """Compiles texts that are written, or that an expression returns."""

    def __init__(self, compiler: CelCompiler) -> None:
        self._compiler = compiler

    def of(self, text: str, written: Expression | None) -> _Text:
        if written is None:
            return lambda _evaluate: text
        program = self._compiler.compile(written.text, written.path, expected=(types.STRING, types.DYN))

        def evaluated(evaluate: Evaluate) -> str:
            found = evaluate(program) if program is not None else None
            if not isinstance(found, str):
                raise VerificationError("an expression does not return a string")
            return found

        return evaluated

    def given(self, given: Given | None) -> _Text | None:
        return None if given is None else self.of(given.value, given.expression)


def _refuse(cosign: Cosign) -> None:
    """Raise VerificationError for what nothing here would check."""
    refused = ((cosign.tuf is not None, "cosign.tuf is not supported: write the trusted root as trustedRoot"),)
    for wrong, text in refused:
        if wrong:
            raise VerificationError(text)


def _common(cosign: Cosign, path: str, trust: Trust) -> Attestor:
    """Return an attestor with a placeholder for its authority."""
    ctlog, source = cosign.ctlog or Ctlog(), cosign.source or SignatureSource()
    logs: tuple[TransparencyLog, ...] = ()
    if not ctlog.insecure_ignore_tlog:
        own = read_keys(ctlog.rekor_pub_key) if ctlog.rekor_pub_key else ()
        logs = tuple(map(TransparencyLog.of_key, own)) or trust.root().logs
    stamps = (Authority(read_certificates(ctlog.tsa_cert_chain)),) if ctlog.tsa_cert_chain else ()
    return Attestor(
        path,
        authorities=_PLACEHOLDER,
        annotations={name: exact(text) for name, text in cosign.annotations.items()},
        log_required=not ctlog.insecure_ignore_tlog,
        logs=logs,
        timestamp_required=bool(stamps),
        time_authorities=stamps,
        repository=source.repository,
        tag_prefix=source.tag_prefix,
        pull_secrets=source.pull_secrets,
    )


_PLACEHOLDER = (Authority(()),)


def _kms_key(written: Key, trust: Trust) -> str:
    if written.data or written.expression is not None:
        raise VerificationError("cosign.key must have exactly one of data, kms and expression")
    if not written.kms.startswith(KMS_SCHEMES):
        raise VerificationError("cosign.key.kms names a system that is not supported: write the public key")
    return trust.public_key(written.kms)


def _key_of(text: str, hash_name: str, trust: Trust) -> dict[str, Any]:
    if hash_name and hash_name not in HASHES:
        raise VerificationError(f"cosign.key.hashAlgorithm must be one of {', '.join(HASHES)}")
    if text.startswith("k8s://"):
        text = trust.public_key(text)
    return {"key": read_key(text.strip().encode()), "hash_name": hash_name or "sha256", "authorities": ()}


def _certificate_logs(ctlog: Ctlog | None, trust: Trust, *, needed: bool) -> dict[str, Any]:
    written = ctlog or Ctlog()
    if written.insecure_ignore_sct or not needed:
        return {"certificate_log_required": not written.insecure_ignore_sct}
    own = read_keys(written.ct_log_pub_key) if written.ct_log_pub_key else ()
    return {"certificate_logs": tuple(map(TransparencyLog.of_key, own)) or trust.root().certificate_logs}


def _identity(written: WrittenIdentity, subject: str) -> Identity:
    """Return an identity; a regular expression wins over the text beside it."""
    subjects = _match(subject or written.subject, written.subject_reg_exp)
    issuers = _match(written.issuer, written.issuer_reg_exp)
    if not subjects and not issuers:
        raise VerificationError("an identity must have an issuer or a subject")
    return Identity(subjects, issuers)


def _match(text: str, pattern: str) -> tuple[TextMatch, ...]:
    if not pattern:
        return (exact(text),) if text else ()
    try:
        return (expression(pattern),)
    except PyvernoError as error:
        raise VerificationError(error.message) from None
