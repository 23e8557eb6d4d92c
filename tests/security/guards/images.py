"""The guards of image verification in rules: one digest (I8), every constraint (I7)."""

from __future__ import annotations

from typing import Final

from tests.security.guards.guard import guard

__all__ = ["VERIFICATION"]

_VERIFY: Final = "tests/unit/engine/actions/test_verify_images.py"
_CEL_IMAGES: Final = "tests/unit/engine/actions/cel/test_images.py"
_CLIENT: Final = "tests/unit/registry/test_client.py"
_REGISTRY: Final = "tests/unit/registry/test_images.py"
_UNIT: Final = "tests/unit/images/verification/test_verify.py"
_WRONG: Final = f"{_UNIT}::test_a_wrong_signature_fails_with_its_reason"
_CHAIN: Final = "tests/unit/images/verification/test_chain.py"
_COMMAND: Final = "tests/unit/cli/verify/test_command.py"

VERIFICATION: Final = (
    guard(
        "I7",
        "verify: signatures count in the form of the policy",
        f"{_COMMAND}::test_signatures_count_in_the_form_that_the_policy_demands",
        ("registry/policydemands.py", "forms=(block.signatures,)", "forms=()"),
    ),
    guard(
        "I7",
        "verify: every policy decides",
        f"{_COMMAND}::test_a_policy_that_decides_nothing_here_is_an_error",
        ("registry/policydemands.py", "if not is_demanded:", "if False:"),
    ),
    guard(
        "I7",
        "verify: conditions are not left out",
        f"{_COMMAND}::test_rules_that_depend_on_more_than_signatures_are_reviewed",
        ("registry/policydemands.py", "or block.deny is not None\n", "or False\n"),
    ),
    guard(
        "I7",
        "verify: a policy that judges no Pod verifies nothing",
        f"{_COMMAND}::test_a_policy_in_cel_that_is_not_about_pods_is_an_error",
        ("cli/verify/reviews.py", "if not judged:", "if False:"),
    ),
    guard(
        "I7",
        "verify: an attestation has a type",
        f"{_COMMAND}::test_an_attestation_of_a_policy_is_never_a_signature",
        ("registry/policydemands.py", "if not demand.type:", "if False:"),
    ),
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
            "return PassKey(self._image.parsed.normal_repository, self.at_work.resolve().digest, constraints)",
            'return PassKey(self._image.parsed.normal_repository, "", constraints)',
        ),
    ),
    guard(
        "I7",
        "statements of others do not help",
        f"{_VERIFY}::test_statements_of_others_neither_help_nor_harm",
        (
            "engine/imageverification/verifier.py",
            "if id(each) not in verified and verify(entry, each, expected).ledger.passes:",
            "if id(each) not in verified:",
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
        "images::test_a_rule_continues_after_an_image_that_it_does_not_match"
        " images::test_an_image_policy_continues_after_an_image_that_it_does_not_match",
        (
            "engine/actions/verify_images.py",
            "                if not block.selects(image):\n                    continue",
            "                if not block.selects(image):\n                    break",
        ),
        (
            "engine/actions/cel/images.py",
            "for index, text in enumerate(texts):",
            "for index, text in enumerate(texts[:1]):",
        ),
    ),
    guard(
        "I9",
        "intermediate certificates are few",
        f"{_CHAIN}::test_more_than_ten_intermediate_certificates_are_an_error",
        ("images/verification/chain.py", "if len(offered) > MAX_CHAIN:", "if False:"),
    ),
    guard(
        "I9",
        "intermediate certificates lead one way",
        f"{_CHAIN}::test_certificates_that_issue_each_other_in_many_ways_are_an_error",
        (
            "images/verification/chain.py",
            "if len(offered) > 1 and len({(each.x509.subject, _key_bytes(each)) for each in offered}) < len(offered):",
            "if False:",
        ),
    ),
    guard(
        "I4",
        "errors about images show variables",
        "images::test_no_error_about_an_image_shows_what_a_variable_holds",
        (
            "engine/actions/verify_images.py",
            "each._replace(message=self._redact(each.message))",
            "each._replace(message=each.message)",
        ),
    ),
    guard(
        "I7",
        "a certificate without a subject has no identity",
        _WRONG,
        (
            "images/verification/verify.py",
            "return all(any(map(each.matches, subjects)) for each in identity.subjects)",
            "return not subjects or all(any(map(each.matches, subjects)) for each in identity.subjects)",
        ),
    ),
    guard(
        "I7",
        "one key counts once",
        f"{_UNIT}::test_the_same_key_counts_once",
        (
            "images/verification/counting.py",
            "        if each.passes and not each.signers & counted:",
            "        if each.passes:",
        ),
    ),
    guard(
        "I7",
        "a threshold can be reached and is no zero",
        f"{_UNIT}::test_a_threshold_of_zero_or_out_of_reach_is_refused",
        (
            "images/verification/attestors.py",
            "if not 0 < self.count <= len(self.entries):",
            "if False:",
        ),
    ),
    guard(
        "I7",
        "a registry that fails is no registry without signatures",
        f"{_VERIFY}::test_a_registry_that_fails_is_an_error",
        (
            "registry/client.py",
            "if answer.status != 200:",
            "if False:",
        ),
    ),
    guard(
        "I8",
        "a digest names its bytes",
        f"{_CLIENT}::test_a_blob_with_other_bytes_is_an_error",
        (
            "registry/client.py",
            "if _digest(answer.body) != digest:",
            "if False:",
        ),
    ),
    guard(
        "I8",
        "a document is an image or an index",
        f"{_CLIENT}::test_a_manifest_that_is_image_and_index_is_an_error",
        (
            "registry/client.py",
            'if any(found.get(name) for name in foreign) or found.get("mediaType") in types:',
            "if False:",
        ),
    ),
    guard(
        "I8",
        "an image has a configuration",
        f"{_REGISTRY}::test_an_image_without_a_configuration_has_no_data",
        (
            "registry/images.py",
            'if not isinstance(digest, str):\n            raise HostError(f"image `{image}` has no',
            'if False:\n            raise HostError(f"image `{image}` has no',
        ),
    ),
    guard(
        "I9",
        "a token is no longer than a header",
        f"{_CLIENT}::test_a_token_is_no_longer_than_a_header",
        (
            "registry/transport.py",
            " and len(token) <= _MAX_TOKEN_LENGTH",
            "",
        ),
    ),
    guard(
        "I9",
        "an image has few referrers",
        f"{_CLIENT}::test_too_many_referrers_are_an_error",
        (
            "registry/client.py",
            "if len(kept) > _MAX_REFERRERS:",
            "if False:",
        ),
    ),
    guard(
        "I9",
        "an image has few signatures",
        f"{_REGISTRY}::test_more_than_a_hundred_signatures_are_an_error",
        (
            "registry/storedreading.py",
            "if len(layers) > _MAX_SIGNATURES:",
            "if False:",
        ),
    ),
    guard(
        "I9",
        "signatures read together have few bytes",
        f"{_REGISTRY}::test_signatures_read_together_have_few_bytes",
        ("registry/storedreading.py", "if size > self.left:", "if False:"),
    ),
    guard(
        "I9",
        "manifests of referrers have their declared size",
        f"{_REGISTRY}::test_the_manifest_of_a_referrer_has_its_declared_size",
        ("registry/storedreading.py", "if len(manifest.body) > size:", "if False:"),
    ),
    guard(
        "I9",
        "manifests of referrers count as read",
        f"{_REGISTRY}::test_the_manifests_of_referrers_count_as_read",
        ("registry/storedreading.py", "self.allowance.reserve(listed.size, MAX_MANIFEST)", "MAX_MANIFEST"),
    ),
    guard(
        "I9",
        "lists and tags count as read",
        f"{_REGISTRY}::test_lists_and_manifests_without_a_declared_size_count_as_read",
        ("registry/storedreading.py", "        self.allowance.charge(found.size)\n", ""),
    ),
    guard(
        "I9",
        "lists of referrers have a length",
        f"{_CLIENT}::test_the_pages_of_referrers_have_few_bytes_together",
        ("registry/client.py", "if size > _MAX_LIST:", "if False:"),
    ),
    guard(
        "I9",
        "configurations of images have a length",
        f"{_REGISTRY}::test_documents_of_an_image_are_small_before_they_are_parsed",
        ("registry/images.py", "digest, MAX_CONFIGURATION, deadline", "digest, 1 << 30, deadline"),
    ),
    guard(
        "I9",
        "documents of registries have few values",
        f"{_REGISTRY}::test_documents_of_an_image_are_small_before_they_are_parsed",
        ("registry/documents.py", "if has_more_values(body, MAX_VALUES):", "if False:"),
    ),
    guard(
        "I9",
        "signatures count as read",
        "tests/unit/engine/test_broker.py::test_signatures_count_as_read",
        ("engine/broker.py", "sum(len(each.blob) for each in stored)", "0"),
    ),
    guard(
        "I9",
        "answers that expressions read count",
        "tests/unit/engine/cel/test_brokerhost.py::test_answers_count_as_read",
        ("engine/cel/brokerhost.py", "charge_bytes(size, per_step", "charge_bytes(0, per_step"),
    ),
    guard(
        "I9",
        "signed documents have few values",
        "tests/unit/images/verification/test_strictjson.py::test_a_document_of_too_many_values_is_not_parsed",
        ("images/verification/strictjson.py", "    if has_more_values(data, MAX_VALUES):", "    if False:"),
    ),
    guard(
        "I9",
        "the deadline holds between two signatures",
        f"{_UNIT}::test_the_deadline_is_looked_at_before_every_signature",
        (
            "images/verification/verify.py",
            "            check_deadline()\n            found = verify",
            "            found = verify",
        ),
    ),
    guard(
        "I9",
        "a checkpoint has one signature of a log",
        f"{_UNIT}::test_a_checkpoint_has_one_signature_of_a_log",
        ("images/verification/merkle.py", "first.setdefault(hint, signature)", "first[hint] = signature"),
    ),
    guard(
        "I9",
        "no credential goes along to another host",
        f"{_CLIENT}::test_a_redirect_to_another_host_takes_no_credential_along",
        (
            "registry/transport.py",
            'kept = {name: value for name, value in outgoing.headers.items() if name != "Authorization"}',
            "kept = dict(outgoing.headers)",
        ),
    ),
    guard(
        "I1",
        "a resource names Secrets of its own namespace",
        f"{_REGISTRY}::test_a_resource_cannot_name_the_secret_of_another_namespace",
        (
            "registry/images.py",
            'if "/" in name:\n                raise',
            "if False:\n                raise",
        ),
    ),
)
