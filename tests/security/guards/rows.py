# ruff: noqa: E501 - texts of the source stand here as they are there
"""The guards of rows of the register (1A, 1B, 1E) whose tests stand beside the code: reports, digests, lists, UpdateRequests."""

from __future__ import annotations

from typing import Final

from tests.security.guards.guard import guard

__all__ = ["ROWS"]

_CLIENT: Final = "registry/client.py"
_TRIGGERS: Final = "controllers/background/mutating/triggers.py"
_CLIENT_TESTS: Final = "tests/unit/registry/test_client.py"
_TRIGGER_TEST: Final = (
    "tests/unit/controllers/background/mutating/test_triggers.py::test_another_object_of_the_name_is_no_trigger"
)
_RULE_TESTS: Final = "tests/unit/controllers/background/generating/test_rules.py"
_OCI_TEST: Final = "tests/unit/cli/oci/test_command.py::test_what_an_artifact_holds_is_not_trusted"
_LENGTHS: Final = "tests/unit/images/verification/test_keys.py::test_what_is_long_is_refused_by_its_length"

ROWS: Final = (
    guard(
        "1A", "CVE-2023-47630: a registry does not choose a digest",
        f"{_CLIENT_TESTS}::test_a_header_that_names_another_digest_of_a_tag_is_an_error",
        (_CLIENT, 'if said is not None and said.startswith("sha256:") and said != found:', "if False:"),
    ),
    guard(
        "1A", "CVE-2023-42813: lists of referrers end",
        f"{_CLIENT_TESTS}::test_pages_of_referrers_do_not_go_on_forever_or_elsewhere",
        (_CLIENT, "for _ in range(_MAX_PAGES):", "for _ in range(10**9):"),
        may_hang=True,
    ),
    guard(
        "1A", "CVE-2023-42815: attestations have a number",
        "tests/unit/registry/test_images.py::test_more_than_a_hundred_attestations_are_an_error",
        ("registry/storedreading.py", "if len(layers) > _MAX_SIGNATURES:", "if False:"),
    ),
    guard(
        "1A", "CVE-2023-42816: a slow registry has the time of its call",
        f"{_CLIENT_TESTS}::test_a_silent_registry_ends_at_the_limit",
        ("registry/transport.py", "        seconds = self._settings.seconds\n", "        seconds = 10 * self._settings.seconds\n"),
    ),
    guard(
        "1A", "CVE-2026-44245: texts of reports are escaped",
        "tests/unit/report/test_overview.py::test_a_page_has_no_markup_of_its_results",
        ("report/html.py", "from pyverno.sinks.markup import html_text", "from builtins import str as html_text"),
    ),
    guard(
        "1A", "CVE-2023-34091: an object that is being deleted triggers generation",
        f"{_RULE_TESTS}::test_an_object_that_is_being_deleted_triggers_as_before",
        ("controllers/background/generating/generator.py",
         'is_terminating = bool(_metadata(asked, "object").get("deletionTimestamp"))', "is_terminating = False"),
    ),
    guard(
        "1A", "CVE-2025-46342: a namespace that the watch does not know is read",
        "tests/unit/controllers/background/mutating/test_triggers.py::test_the_namespace_is_read_where_the_watch_is_behind",
        ("controllers/background/namespaces.py", "    if found is not None:\n", "    if True:\n"),
    ),
    guard(
        "1B", "0b8c53a4: a rejected request generates nothing",
        f"{_RULE_TESTS}::test_a_rejected_request_generates_nothing",
        ("controllers/background/generating/triggers.py", "if trigger.uid and uid_of(found) != trigger.uid:", "if False:"),
    ),
    guard(
        "1B", "8b7f4b72: an image without a digest fails",
        "tests/unit/engine/actions/cel/test_images.py::test_an_image_without_a_digest_fails",
        ("engine/actions/cel/images.py", "if self.verifies_digest and not info.digest:", "if False:"),
    ),
    guard(
        "1B", "d70926cd: a policy matches something",
        "tests/unit/compiler/validation/test_cel.py::test_constraints_are_required_for_kubernetes_objects",
        ("compiler/validation/cel.py", 'findings.error("match-constraints", ("spec", "matchConstraints"), text)', "pass"),
    ),
    guard(
        "1B", "0b8c53a4: another object of the name is no trigger of a request", _TRIGGER_TEST,
        ("controllers/evidence.py", "if uid and uid_of(live) != uid:", "if False:"),
    ),
    guard(
        "1B", "0b8c53a4: another object of the name is no trigger of a policy", _TRIGGER_TEST,
        (_TRIGGERS, "if live is None or (trigger.uid and Resource(live).uid != trigger.uid):", "if live is None:"),
    ),
    guard(
        "1B", "ef64527e: policies of a namespace are in the scan",
        "tests/unit/controllers/reports/test_evaluation.py::test_policies_of_a_namespace_that_enforce_are_reported",
        ("controllers/reports/plan.py",
         "checking = [each for each in scanned if any(rule.stage is not Stage.MUTATE for rule in scanned_rules(each))]",
         "checking = [each for each in scanned if not each.info.namespace]"),
    ),
    guard(
        "1B", "eb49d4c4: what cannot be read is not gone",
        "tests/unit/controllers/runtime/test_owndeployment.py::test_a_forbidden_deployment_is_neither_rolling_nor_gone",
        ("controllers/runtime/owndeployment.py", "if error.status != 404:", "if False:"),
    ),
    guard(
        "1B", "68130831: etcd takes every update request",
        "tests/unit/controllers/admission/test_updaterequests.py::test_objects_are_referenced",
        ("controllers/admission/updaterequests.py", "if _is_stored(request):", "if False:"),
    ),
    guard(
        "1E", "CVE-2022-35929, CVE-2022-35930: an attestation counts for its type",
        "tests/unit/images/verification/test_verify.py::test_an_attestation_passes_for_its_own_type_only",
        ("images/verification/verify.py", "if found != self.expected.predicate_type:", "if False:"),
    ),
    guard(
        "1E", "CVE-2026-49834: the same signer counts once",
        "tests/unit/images/verification/test_verify.py::test_the_same_key_counts_once",
        ("images/verification/counting.py", "        if each.passes and not each.signers & counted:", "        if each.passes:"),
    ),
    guard(
        "1E", "CVE-2024-29902: a manifest has a size", f"{_CLIENT_TESTS}::test_a_registry_that_lies_is_an_error",
        (_CLIENT, "MAX_MANIFEST: Final = 4 * 1024 * 1024", "MAX_MANIFEST: Final = 64 * 1024 * 1024"),
    ),
    guard(
        "1E", "CVE-2023-2253: pages continue at their registry",
        f"{_CLIENT_TESTS}::test_pages_of_referrers_do_not_go_on_forever_or_elsewhere",
        (_CLIENT, 'if not path.startswith("/v2/"):', "if False:"),
    ),
    guard(
        "1E", "CVE-2024-3727: a digest is one", f"{_CLIENT_TESTS}::test_only_sha256_names_a_blob",
        (_CLIENT, "        if not _DIGEST.fullmatch(digest):\n            raise HostError(f\"`{digest[:80]}`",
         "        if False:\n            raise HostError(f\"`{digest[:80]}`"),
    ),
    guard(
        "1E", "CVE-2025-27403: credentials of a cloud are for its registries",
        "tests/unit/registry/providers/test_providers.py::test_each_registry_belongs_to_one_cloud",
        ("registry/providers/google.py", 'registry.endswith((".gcr.io", "-docker.pkg.dev"))', 'registry.startswith("gcr.io")'),
    ),
    guard(
        "1E", "CVE-2026-50162, CVE-2026-50163: names of artifacts are no paths", _OCI_TEST,
        ("cli/oci/run.py", "if not isinstance(name, str) or not _NAME.fullmatch(name):", "if not isinstance(name, str):"),
    ),
    guard(
        "1E", "CVE-2025-66564, CVE-2025-66506: sizes come before texts", _LENGTHS,
        ("images/verification/keys.py", "    if len(data) > MAX_PEM:\n", "    if False:\n"),
        ("images/verification/timestamps.py", "    if len(token) > _MAX_BYTES:\n", "    if False:\n"),
    ),
)  # fmt: skip
