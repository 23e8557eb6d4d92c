"""The guards of I19: everybody acts with their own rights."""

from __future__ import annotations

from typing import Final

from tests.security.guards.guard import Guard, guard

__all__ = ["RIGHTS"]

_AUTHORS: Final = "controllers/rights/authors.py"
_DEMANDS: Final = "controllers/rights/demands.py"
_TENANT: Final = "tests/security/strangers/test_tenant.py::"
_READER: Final = "tests/security/strangers/test_reading_tenant.py::"
_READS: Final = "controllers/rights/reads.py"
_KEPT: Final = "controllers/keptobjects.py"

RIGHTS: Final[tuple[Guard, ...]] = (
    guard(
        "I19",
        "the author of a policy may do what it does",
        f"{_TENANT}test_a_policy_is_admitted_only_if_its_author_may_do_what_it_does",
        ("webhook/policyreviews.py",),
    ),
    guard(
        "I19",
        "the verb escalate excepts",
        f"{_TENANT}test_the_verb_escalate_excepts",
        (_AUTHORS, "lacking"),
    ),
    guard(
        "I19",
        "a policy without an author writes nothing",
        f"{_TENANT}test_what_an_author_may_make_is_made {_TENANT}test_what_an_author_may_change_is_changed",
        (_AUTHORS, "True"),
    ),
    guard(
        "I19",
        "the permissions of the author bound each write",
        f"{_TENANT}test_what_admission_cannot_see_is_checked_at_work",
        (_AUTHORS,),
    ),
    guard(
        "I19",
        "a policy names the user who wrote it",
        f"{_TENANT}test_an_author_cannot_be_named_by_another {_TENANT}test_a_policy_without_an_author_writes_nothing",
        ("webhook/authors.py",),
    ),
    guard(
        "I19",
        "a flag gives the behaviour of Kyverno",
        f"{_TENANT}test_kyvernos_behaviour_has_a_flag",
        (_AUTHORS,),
    ),
    guard(
        "I19",
        "a policy whose author cannot be checked is rejected",
        f"{_TENANT}test_a_policy_is_rejected_while_its_author_cannot_be_checked",
        ("webhook/policyreviews.py", "()"),
    ),
    guard(
        "I19",
        "no user names another author",
        f"{_TENANT}test_a_policy_is_rejected_while_its_author_cannot_be_checked",
        ("webhook/policyreviews.py",),
    ),
    guard(
        "I19",
        "a time to live is a deletion",
        f"{_TENANT}test_a_time_to_live_is_a_deletion {_TENANT}test_a_label_that_stays_deletes_nothing_more",
        ("webhook/cleanupreviews.py",),
    ),
    guard(
        "I19",
        "every write says whose permissions it has",
        "policy_rights::test_every_write_says_whose_permissions_it_has",
        (
            "controllers/applier.py",
            "    async def _authorize_copy(",
            "    async def _more(self) -> None:\n        await self._client.create(_REVIEWS, {})\n\n"
            "    async def _authorize_copy(",
        ),
    ),
    guard(
        "I19",
        "a deletion is authorized",
        "policy_rights::test_what_a_policy_writes_is_authorized_first",
        ("controllers/applier.py", '        await self.authorize(cause, "delete", gvr, target)\n', ""),
    ),
    guard(
        "I19",
        "every policy of a namespace has an author",
        "policy_rights::test_every_kind_of_a_namespace_is_settled",
        ("webhook/authors.py", "(Family.RULES, Family.CEL, Family.CLEANUP)", "(Family.RULES, Family.CEL)"),
    ),
    guard(
        "I19",
        "default credentials are not lent",
        "policy_rights::test_images_of_a_namespace_are_read_without_credentials_of_the_installation",
        ("registry/images.py", "True"),
    ),
    guard(
        "I19",
        "no namespace borrows credentials",
        "policy_rights::test_every_read_of_an_image_says_whose_it_is",
        ("engine/broker.py", "credentials"),
    ),
    guard(
        "I19",
        "no read of an image is forgotten",
        "policy_rights::test_no_read_of_an_image_is_forgotten",
        (
            "engine/broker.py",
            "    def _confine_access(",
            "    def other(self, access: ImageAccess) -> None:\n        return None\n\n    def _confine_access(",
        ),
    ),
    guard(
        "I19",
        "an UpdateRequest references its objects",
        "kept_objects::test_no_update_request_holds_a_secret",
        ("controllers/admission/updaterequests.py",),
    ),
    guard(
        "I19",
        "a kept object goes with its request",
        "kept_objects::test_what_is_kept_goes_with_its_request",
        (_KEPT, "[]"),
    ),
    guard(
        "I19",
        "a kept object is of its request",
        "kept_objects::test_a_kept_object_is_of_its_request",
        (_KEPT,),
    ),
    guard(
        "I19",
        "keeping twice is keeping once",
        "kept_objects::test_keeping_twice_is_keeping_once",
        (_KEPT, "True"),
    ),
    guard(
        "I19",
        "to connect is to create",
        f"{_TENANT}test_a_policy_is_admitted_only_if_its_author_may_do_what_it_does",
        (_DEMANDS, '{"CREATE": "create", "UPDATE": "update"}'),
    ),
    guard(
        "I19",
        "all subresources are the object, too",
        f"{_TENANT}test_a_policy_is_admitted_only_if_its_author_may_do_what_it_does",
        (_DEMANDS,),
    ),
    guard(
        "I19",
        "copies of a policy need the same",
        f"{_TENANT}test_a_policy_is_admitted_only_if_its_author_may_do_what_it_does",
        (_DEMANDS, "()"),
    ),
    guard(
        "I19",
        "who notes something is no author",
        f"{_TENANT}test_a_tool_that_notes_something_on_a_policy_is_not_its_author",
        ("webhook/authors.py", "dict(written)"),
    ),
    guard(
        "I19",
        "no text of a request is remembered",
        "tests/unit/cluster/test_accessreviews.py::test_answers_are_remembered_without_the_texts_of_their_questions",
        ("cluster/accessreviews.py", 'text.encode("utf-8", "surrogatepass")'),
    ),
    guard(
        "I19",
        "a policy reads what its author may read",
        "policy_rights::test_every_read_of_a_policy_is_checked_for_its_author "
        "policy_rights::test_a_path_is_judged_as_the_api_server_reads_it "
        "policy_rights::test_every_rule_reads_as_its_policy "
        f"{_READER}test_no_answer_tells_what_the_author_may_not_read "
        f"{_READER}test_no_object_tells_what_the_author_may_not_read "
        f"{_READER}test_no_report_tells_what_the_author_may_not_read "
        f"{_READER}test_no_deletion_tells_what_the_author_may_not_read "
        f"{_READER}test_the_canary_is_nowhere",
        ("engine/broker.py",),
    ),
    guard(
        "I19",
        "no read is without an author",
        "policy_rights::test_no_read_is_without_an_author",
        (
            "engine/broker.py",
            "    def _confine_access(",
            "    def other_read(self) -> None:\n        return None\n\n    def _confine_access(",
        ),
    ),
    guard(
        "I19",
        "no host around another loses the check",
        "policy_rights::test_no_host_around_another_loses_the_check",
        ("cluster/forwardinghost.py",),
    ),
    guard(
        "I19",
        "a scan follows the permissions of authors",
        "policy_rights::test_a_scan_follows_the_permissions_of_authors",
        ("cluster/notinghost.py",),
    ),
    guard(
        "I19",
        "no loop waits for rights",
        "policy_rights::test_no_loop_waits_for_the_rights_of_an_author",
        ("webhook/nonblocking.py",),
    ),
    guard(
        "I19",
        "every controller checks reads",
        "policy_rights::test_every_controller_checks_reads",
        ("controllers/reports/controller.py", "reads=author_reads", "reads=author_reads_"),
    ),
    guard(
        "I19",
        "a policy judges what its author may read",
        f"{_READER}test_a_policy_is_admitted_only_if_its_author_may_read_what_it_reads",
        ("controllers/rights/demands.py",),
    ),
    guard(
        "I19",
        "a cleanup judges what is read",
        f"{_READER}test_a_cleanup_judges_what_its_author_may_read",
        ("controllers/cleanup/run.py",),
    ),
    guard(
        "I19",
        "a decision about a read is short-lived",
        f"{_READER}test_a_decision_about_a_read_is_short_lived",
        (_READS,),
    ),
    guard(
        "I19",
        "decisions about reads are bounded",
        f"{_READER}test_decisions_about_reads_are_bounded",
        (_READS,),
    ),
    guard(
        "I19",
        "a policy without an author reads nothing",
        f"{_READER}test_a_policy_without_an_author_reads_nothing",
        (_READS, "            refusal = error.message\n", ""),
    ),
)
