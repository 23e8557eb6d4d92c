# ruff: noqa: E501 - texts of the source stand here as they are there
"""The guards of the webhook's certificates: changed Secrets, wrong clocks, several replicas."""

from __future__ import annotations

from typing import Final

from tests.security.guards.guard import guard

__all__ = ["CERTIFICATES"]

_SECRETS: Final = "controllers/certificates/secrets.py"
_SERVING: Final = "controllers/certificates/serving.py"
_RECONCILER: Final = "controllers/webhooks/reconciler.py"
_LEADER: Final = "tests/unit/controllers/admission/test_leader.py"
_UNPUBLISHED: Final = "certificates::test_no_replica_that_is_ready_serves_an_authority_that_no_leader_has_published"
_DAMAGE: Final = "certificates::test_no_change_of_a_secret_takes_the_webhook_out_of_service"

CERTIFICATES: Final = (
    guard(
        "T1", "an authority has the key of its certificate", f"{_DAMAGE}[authority-the-certificate-of-another]",
        (_SECRETS, "and certificate.public_key() == authority.private_key().public_key()", "and bool(authority.private_key())"),
        may_hang=True,
    ),
    guard(
        "T1", "an authority may sign", f"{_DAMAGE}[authority-no-authority]",
        (_SECRETS, "constraints.ca\n            and ", ""), may_hang=True,
    ),
    guard(
        "T1", "a leaf has begun", f"{_DAMAGE}[leaf-not-yet-valid]",
        (_SECRETS, "return certificate.not_valid_before_utc <= now < certificate.not_valid_after_utc",
         "return now < certificate.not_valid_after_utc"),
        may_hang=True,
    ),
    guard(
        "T1", "a leaf is one for OpenSSL", f"{_DAMAGE}[leaf-too-weak]",
        (_SECRETS, " and is_usable_pair(leaf.certificates, leaf.key)", ""), may_hang=True,
    ),
    guard(
        "T1", "a replica adopts what is published", f"{_UNPUBLISHED}[deleted-the-one-that-starts]",
        (_SERVING, "if not all(is_trusted(leaf, bundle, datetime.now(UTC)) for bundle in bundles):", "if not bundles:"),
    ),
    guard(
        "T1", "a replica that is not trusted is not ready", f"{_UNPUBLISHED}[deleted-the-one-that-follows]",
        (_SERVING, 'return "" if self._is_trusted else', 'return "" if self._leaf else'),
    ),
    guard(
        "T1", "a new leader publishes", f"{_UNPUBLISHED}[another-the-one-that-starts]",
        (_SERVING, "if any(bundle != self.bundle for bundle in bundles):", "if known is None or known.certificates != authority.certificates:"),
        may_hang=True,
    ),
    guard(
        "T1", "what was trusted stays trusted", f"{_UNPUBLISHED}[another-the-one-that-starts]",
        (_SERVING, "        if others:\n", "        if not others:\n"),
    ),
    guard(
        "T1", "a new term restores nothing of an earlier one", f"{_LEADER}::test_a_new_term_restores_nothing_of_an_earlier_one",
        (_RECONCILER, "        self.placed = None\n        self._written = ()\n", "        self.placed = None\n"),
    ),
    guard(
        "T1", "what is published is not restored away", f"{_LEADER}::test_an_authority_that_is_published_is_not_restored_away",
        (_RECONCILER, "self._written = tuple((endpoint.trusted_by(wanted), is_fixed) for", "self._written = tuple((wanted, is_fixed) for"),
    ),
    guard(
        "I4", "no key is in the bundle", "certificates::test_no_key_beside_a_certificate_is_published",
        (_SECRETS, 'plain = b"".join(', 'plain = read or b"".join('),
    ),
    guard(
        "C9", "clocks may differ", "certificates::test_clocks_that_differ_renew_nothing",
        (_SECRETS, ".not_valid_before(now - timedelta(hours=1))\n        .not_valid_after(now + timedelta(days=_AUTHORITY_DAYS))",
         ".not_valid_before(now)\n        .not_valid_after(now + timedelta(days=_AUTHORITY_DAYS))"),
    ),
    guard(
        "T1", "replicas renew at once", "certificates::test_replicas_that_renew_at_once_agree",
        (_SECRETS, "if error.status != 409:", "if True:"),
    ),
    guard(
        "T1", "a certificate lives for half of its time", "certificates::test_a_long_time_before_the_end_renews_once",
        (_SECRETS, "min(settings.renew_before, half)", "settings.renew_before"),
    ),
)  # fmt: skip
