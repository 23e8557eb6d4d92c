"""Certificates of the webhook: what is made, what is renewed, and what goes on being trusted."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509

from pyverno.controllers.certificates import (
    CertificateSettings,
    KeyPair,
    is_good_leaf,
    make_authority,
    make_leaf,
    read_pair,
    renewed_bundle,
)

NOW = datetime(2026, 11, 22, tzinfo=UTC)
SETTINGS = CertificateSettings()


@pytest.mark.parametrize("algorithm", ["ECDSA", "RSA", "Ed25519"])
def test_a_leaf_is_trusted_by_its_authority(algorithm: str) -> None:
    """Whatever the kind of key; the names are those of the service."""
    settings = CertificateSettings(algorithm=algorithm, server="127.0.0.1:9443")
    authority = make_authority(algorithm, NOW)
    leaf = make_leaf(authority, settings, NOW)
    [certificate] = leaf.parsed()
    assert is_good_leaf(leaf, authority, settings, NOW)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert ["kyverno-svc", "kyverno-svc.kyverno", "kyverno-svc.kyverno.svc"] == names.get_values_for_type(x509.DNSName)
    assert ["127.0.0.1"] == [str(each) for each in names.get_values_for_type(x509.IPAddress)]
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_verify_locations(cadata=authority.certificates.decode())


def test_a_leaf_never_outlives_its_authority() -> None:
    """A client that checks the chain would refuse it then."""
    authority = make_authority("ECDSA", NOW)
    late = NOW + timedelta(days=300)
    leaf = make_leaf(authority, SETTINGS, late)
    assert authority.parsed()[0].not_valid_after_utc == leaf.parsed()[0].not_valid_after_utc


def test_what_lasts_long_enough_is_left_alone() -> None:
    """Up to fifteen days before its end."""
    authority = make_authority("ECDSA", NOW)
    leaf = make_leaf(authority, SETTINGS, NOW)
    assert renewed_bundle(authority, SETTINGS, NOW + timedelta(days=349)) is None
    assert is_good_leaf(leaf, authority, SETTINGS, NOW + timedelta(days=134))
    assert not is_good_leaf(leaf, authority, SETTINGS, NOW + timedelta(days=136))


def test_an_authority_that_is_renewed_still_trusts_old_leaves() -> None:
    """The key stays and the old certificate stays behind the new one until it ends."""
    authority = make_authority("ECDSA", NOW)
    late = NOW + timedelta(days=351)
    leaf = make_leaf(authority, CertificateSettings(renew_before_days=1), late)
    renewed = renewed_bundle(authority, SETTINGS, late)
    assert renewed is not None
    assert 2 == len(renewed.parsed())
    assert authority.parsed()[0] == renewed.parsed()[1]
    assert is_good_leaf(leaf, renewed, CertificateSettings(renew_before_days=1), late)
    ended = renewed_bundle(authority, SETTINGS, NOW + timedelta(days=366))
    assert ended is not None
    assert 1 == len(ended.parsed())


def test_a_leaf_of_another_service_or_key_is_not_good() -> None:
    """Nor one that another authority signed."""
    authority = make_authority("ECDSA", NOW)
    leaf = make_leaf(authority, SETTINGS, NOW)
    assert not is_good_leaf(leaf, authority, CertificateSettings(service="other"), NOW)
    assert not is_good_leaf(leaf, make_authority("ECDSA", NOW), SETTINGS, NOW)
    assert not is_good_leaf(KeyPair(leaf.certificates, authority.key), authority, SETTINGS, NOW)
    assert not is_good_leaf(KeyPair(b"", b""), authority, SETTINGS, NOW)


@pytest.mark.parametrize("data", [{}, {"tls.crt": "!", "tls.key": "!"}, {"tls.crt": "eA==", "tls.key": "eA=="}])
def test_a_secret_that_holds_no_pair_is_none(data: dict[str, str]) -> None:
    """It is then made again, or left to its owner."""
    assert read_pair({"data": data}) is None
