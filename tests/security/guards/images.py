"""The guards of image verification in rules: one digest (I8), every constraint (I7)."""

from __future__ import annotations

from typing import Final

from tests.security.guards.guard import guard

__all__ = ["VERIFICATION"]

_VERIFY: Final = "tests/unit/engine/actions/test_verify_images.py"
_CEL_IMAGES: Final = "tests/unit/engine/actions/cel/test_images.py"
_CERTIFICATES: Final = "tests/unit/images/verification/test_certificates.py"

VERIFICATION: Final = (
    guard(
        "I8",
        "a tag is resolved once in a review",
        f"{_VERIFY}::test_a_tag_is_resolved_once_in_a_review",
        (
            "engine/imageverification/verifier.py",
            "if key not in memory:",
            "if True:",
        ),
    ),
    guard(
        "I8",
        "verifications are kept by digest",
        f"{_VERIFY}::test_the_second_look_is_answered_from_the_cache_until_the_tag_moves",
        (
            "engine/actions/verify_images.py",
            "return PassKey(self.at_work.repository, self.at_work.resolve().digest, constraints)",
            'return PassKey(self.at_work.repository, "", constraints)',
        ),
    ),
    guard(
        "I7",
        "an attestation without attestors is no proof",
        f"{_VERIFY}::test_an_attestation_without_attestors_is_no_proof",
        ("engine/actions/verify_images.py", "if not demand.attestors:", "if False:"),
    ),
    guard(
        "I7",
        "keyless without an identity is refused",
        f"{_VERIFY}::test_what_cannot_be_verified_is_an_error_of_the_policy",
        ("images/verification/attestorsets.py", "if not issuers and not subjects and not roots:", "if False:"),
    ),
    guard(
        "I7",
        "an image that no policy checked is refused",
        f"{_CEL_IMAGES}::test_every_image_must_have_been_checked",
        ("engine/actions/cel/images.py", "if text not in verified:", "if False:"),
    ),
    guard(
        "I7",
        "every field of an identity counts",
        "images::test_every_field_of_a_keyless_entry_counts images::test_every_field_of_an_identity_counts",
        (
            "images/verification/verify.py",
            "return all(any(map(each.matches, subjects)) for each in identity.subjects)",
            "return True",
        ),
    ),
    guard(
        "I7",
        "an image that a rule is not about does not end it",
        "images::test_a_rule_goes_on_after_an_image_that_it_is_not_about"
        " images::test_an_image_policy_goes_on_after_an_image_that_it_is_not_about",
        (
            "engine/actions/verify_images.py",
            "                if not block.selects(image):\n                    continue",
            "                if not block.selects(image):\n                    break",
        ),
        (
            "engine/actions/cel/images.py",
            "for text in listed if self._matches(",
            "for text in listed[:1] if self._matches(",
        ),
    ),
    guard(
        "I9",
        "intermediate certificates are few",
        f"{_CERTIFICATES}::test_more_than_ten_intermediate_certificates_are_an_error",
        ("images/verification/certificates.py", "if len(offered) > _MAX_CHAIN:", "if False:"),
    ),
    guard(
        "I9",
        "intermediate certificates lead one way",
        f"{_CERTIFICATES}::test_certificates_that_issue_each_other_in_many_ways_are_an_error",
        (
            "images/verification/certificates.py",
            "if len({(each.x509.subject, _key_bytes(each)) for each in offered}) < len(offered):",
            "if False:",
        ),
    ),
    guard(
        "I4",
        "errors about images show variables",
        "images::test_no_error_about_an_image_shows_what_a_variable_holds",
        (
            "engine/actions/verify_images.py",
            "each._replace(message=self._redacted(each.message))",
            "each._replace(message=each.message)",
        ),
    ),
)
