"""The guards of I20 and I21: all of many are judged, by what they mean."""

from __future__ import annotations

from typing import Final

from tests.security.guards.guard import Guard, guard

__all__ = ["MEANING"]

_GLOBS, _HOSTS = "kube/imageref/globs.py", "kube/imageref/hosts.py"
_EXTRACT, _COUNTING = "images/extract.py", "images/verification/counting.py"
_UNIT: Final = "tests/unit/images/test_extract.py"
_FAST: Final = "tests/unit/lang/pattern/fast/test_passcheck.py"

MEANING: Final[tuple[Guard, ...]] = (
    guard(
        "I21", "a host is written in lower case",
        "image_references::test_a_selector_that_enforces_finds_every_spelling", (_HOSTS, "split_port(text)"),
    ),
    guard(
        "I21", "a glob is normalised like a reference",
        "image_references::test_a_selector_that_enforces_finds_every_spelling", (_GLOBS, "[pattern]"),
    ),
    guard(
        "I21", "a digest does not hide an image from a glob of tags",
        "tests/unit/kube/imageref/test_globs.py::test_a_glob_selects_and_exempts", (_GLOBS,),
    ),
    guard(
        "I21", "every tag is every digest",
        "image_references::test_a_selector_that_enforces_finds_every_spelling", (_GLOBS,),
    ),
    guard(
        "I21", "a glob leaves other images alone",
        "image_references::test_a_selector_that_enforces_leaves_others_alone", (_GLOBS, "True"),
    ),
    guard(
        "I21", "an expression sees the normal form",
        "image_references::test_an_expression_that_selects_images_finds_every_spelling",
        ("engine/actions/cel/images.py", "(text,)"),
    ),
    guard(
        "I21", "a wildcard that exempts stays in its part of the name",
        "image_references::test_a_selector_that_exempts_reaches_no_further_than_it_names",
        (_GLOBS, "tuple(map(compile_wildcard, forms))"),
    ),
    guard(
        "I21", "a glob exempts what it names",
        "image_references::test_a_selector_that_exempts_exempts_the_same_image", (_GLOBS, "False"),
    ),
    guard(
        "I21", "a text that is no image is not exempt",
        "image_references::test_a_text_that_is_no_reference_is_not_exempt", (_GLOBS, "True"),
    ),
    guard(
        "I21", "selectors of images are compiled in one place",
        "image_references::test_every_selector_of_images_is_in_the_table",
        ("compiler/cel/images.py", "glob=selecting(each.glob)", "glob=compile_wildcard(each.glob)"),
    ),
    guard(
        "I21", "selectors of images are fields that are known",
        "image_references::test_every_field_of_policies_about_images_is_known",
        ("policy/verifyimages.py", 'Field("skip_image_references"', 'Field("skipped_image_references"'),
    ),
    guard(
        "I21", "an image that cannot be read is an error beside the others",
        "image_references::test_a_text_that_is_no_reference_is_an_error",
        ("engine/actions/verify_images.py", "verdicts"),
    ),
    guard(
        "I21", "an image is text",
        "image_references::test_a_text_that_is_no_reference_is_an_error", (_EXTRACT, "return None"),
    ),
    guard(
        "I21", "expressions see one name of a registry",
        "image_references::test_expressions_and_credentials_see_one_registry",
        ("lang/cel/libraries/kyverno/images.py", "registry"),
    ),
    guard(
        "I21", "a registry has one name for credentials",
        "image_references::test_expressions_and_credentials_see_one_registry",
        ("registry/credentials.py", "split_port(host)"),
    ),
    guard(
        "I21", "an image volume is an image",
        "image_references::test_an_image_volume_is_an_image image_references::test_an_image_volume_does_not_escape",
        ("images/extractors.py", "containers"),
    ),
    guard(
        "I20", "every entry of extractors counts", "image_references::test_every_entry_of_extractors_counts",
        (
            _EXTRACT,
            "FoundImages(tuple(images), tuple(problems))",
            "FoundImages(tuple({each[:2]: each for each in images}.values()), tuple(problems))",
        ),
    ),
    guard("I20", "equal names hide no image", f"{_UNIT}::test_images_with_one_name_all_have_one", (_EXTRACT,)),
    guard(
        "I20", "an image that cannot be read hides no other",
        "image_references::test_an_image_that_cannot_be_read_hides_no_other", (_EXTRACT, "raise"),
    ),
    guard(
        "I20", "a reference that is none hides no other image",
        "tests/unit/engine/actions/cel/test_images.py::test_an_image_that_cannot_be_read_hides_no_other",
        ("engine/actions/cel/images.py", "raise"),
    ),
    guard(
        "I20", "a name hides no group",
        "tests/unit/engine/actions/cel/test_images.py::test_expressions_with_one_name_are_all_judged",
        ("engine/actions/cel/images.py", "groups[name] = _texts(session.evaluate(program), name)"),
    ),
    guard(
        "I20", "attestors have one name each",
        "image_signers::test_attestors_of_an_image_policy_have_names_of_their_own",
        ("compiler/validation/cel.py",),
    ),
    guard(
        "I20", "a digest goes where its image is", "image_references::test_a_name_with_a_slash_is_no_path",
        ("engine/actions/verify_images.py", 'pinned(resource, self._image.pointer.split("/")[1:], text), digest, None'),
    ),
    guard(
        "I20", "an extractor names its field",
        "image_references::test_an_extractor_names_the_field_of_the_image", ("images/extractors.py",),
    ),
    guard(
        "I20", "one signer counts once",
        "image_signers::test_one_key_counts_once image_signers::test_one_key_counts_once_for_attestations"
        " image_signers::test_one_notary_signer_counts_once",
        (_COUNTING, "each.passes"),
    ),
    guard(
        "I20", "a signer counts once in all levels", "image_signers::test_one_key_counts_once",
        (_COUNTING, "_count_in_order(entry, known, check_deadline, _NOBODY)"),
    ),
    guard("I20", "one identity is one signer", "image_signers::test_one_identity_counts_once", (_COUNTING,)),
    guard(
        "I20", "two signers count as two",
        "image_signers::test_two_signers_count_as_two image_signers::test_two_identities_count_as_two",
        (_COUNTING, "return _Search(known, check_deadline).best(attestors, counted) or found", "return found"),
    ),
    guard(
        "I20", "a signer counts once among attestors",
        "image_signers::test_attestors_of_an_image_policy_are_counted_by_their_signer"
        " image_signers::test_identities_of_an_image_policy_are_counted_by_their_signer",
        ("engine/cel/images.py",),
    ),
    guard(
        "I20", "a count is not below zero",
        "image_signers::test_a_count_that_no_entries_can_reach_is_an_error_of_the_policy",
        ("images/verification/attestorfields.py", "int) or found < 0:", "int):"),
    ),
    guard(
        "I20", "a count of zero is all", "image_signers::test_a_count_of_zero_demands_all",
        ("images/verification/attestorsets.py", "count or len(entries)", "count or 1"),
    ),
    guard(
        "I20", "a key of a resource is no anchor", "all_of_many::test_a_key_of_an_object_is_no_anchor",
        ("lang/pattern/metadata.py", "[(name, parse_anchor(name)) for name in found]"),
    ),
    guard(
        "I20", "a condition has wildcards", f"{_FAST}::test_a_condition_about_labels_has_wildcards",
        ("lang/pattern/fast/passcheck.py", "element_check(self.pattern, float_numbers=self.floats)"),
    ),
    guard(
        "I20", "scale is the subresource", "existing_violations::test_a_kind_that_sounds_like_scale_is_not_scale",
        ("policy/subresources.py", "_fits(other, _SCALE) and _covers(other, kind)", '"scale" in other.kind.lower()'),
    ),
    guard(
        "I20", "scale is that of each kind", "existing_violations::test_a_kind_that_sounds_like_scale_is_not_scale",
        ("policy/subresources.py", " and _covers(other, kind)", ""),
    ),
    guard(
        "I20", "scale is seen under the same restrictions",
        "existing_violations::test_a_rule_that_sees_some_requests_to_scale_excuses_no_more",
        ("policy/subresources.py", "if _restrictions(each) == _restrictions(block) and _judges_updates(each)", ""),
    ),
    guard(
        "I20", "an exclusion of scale excuses nothing",
        "existing_violations::test_a_rule_that_sees_some_requests_to_scale_excuses_no_more",
        ("policy/subresources.py", "False"),
    ),
    guard(
        "I20", "a Scale has no labels",
        "existing_violations::test_a_rule_that_sees_some_requests_to_scale_excuses_no_more",
        ("policy/subresources.py", "True"),
    ),
    guard(
        "I21", "a mapped address is the IPv4 host",
        "image_references::test_an_address_in_the_form_of_another_protocol_is_the_same_host",
        (_HOSTS, 'f"[{address}]"'),
    ),
    guard(
        "I21", "a host that exempts is no name", "image_references::test_a_host_that_exempts_is_no_name",
        (_GLOBS, "in_rest(below) and in_head(first)"),
    ),
    guard(
        "I21", "a host in capitals exempts no name of the default registry",
        "image_references::test_a_host_that_exempts_is_no_name",
        (_GLOBS, "return dict.fromkeys(_certain(normal))", "return [i for f in _forms(pattern) for i in _certain(f)]"),
    ),
    guard(
        "I21", "an expression sees every name of Docker Hub",
        "image_references::test_an_expression_sees_official_images_by_each_name_as_written",
        (_GLOBS, "for host in HUB_NAMES[:2] if is_hub else", "for host in"),
    ),
    guard(
        "I21", "an expression sees tags beside digests",
        "image_references::test_a_digest_does_not_hide_a_tag_from_an_expression",
        (_GLOBS, 'dict.fromkeys((f"{tag}{digest}", digest or tag, tag or digest))', '(f"{tag}{digest}",)'),
    ),
    guard(
        "I19", "an open stream asks for the rights again",
        "tests/unit/ui/access/test_login.py::test_an_open_stream_of_events_follows_the_rights",
        ("ui/access/viewer.py", "True"),
    ),
    guard(
        "I19", "no cache keeps what a user sees",
        "tests/unit/ui/server/test_app.py::test_what_a_user_sees_is_kept_by_no_cache",
        ("ui/server/security.py", '    "Cache-Control": "no-store",\n', ""),
    ),
    guard(
        "I20", "many keys are charged", "all_of_many::test_many_keys_are_charged",
        ("lang/pattern/checks.py",),
    ),
)  # fmt: skip
