"""The guards of image verification in rules: one digest (I8), every constraint (I7)."""

from __future__ import annotations

from typing import Final

from tests.security.guards.guard import guard

__all__ = ["VERIFICATION"]

_VERIFY: Final = "tests/unit/engine/actions/test_verify_images.py"
_CEL_IMAGES: Final = "tests/unit/engine/actions/cel/test_images.py"

VERIFICATION: Final = (
    guard(
        "I8",
        "a tag is resolved once in a review",
        f"{_VERIFY}::test_a_tag_is_resolved_once_in_a_review",
        (
            "engine/imageverification/verifier.py",
            "found: ResolvedImage | HostError | None = self.runtime.memory.get(key)",
            "found = None",
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
)
