"""The guards of pages that show users what they may read, and of logins: one claim, and a library checks tokens."""

from __future__ import annotations

from typing import Final

from tests.security.guards.guard import Guard, guard

__all__ = ["LOGINS"]

_TOKENS: Final = "ui/access/idtokens.py"
_CLAIMS: Final = "ui/access/userclaims.py"
_HOST: Final = "ui/access/viewerhost.py"
_SEEN: Final = "cli/ui/claims.py"
_PAGES: Final = "strangers/test_tenant_pages.py"
_SWEEP: Final = f"tests/security/{_PAGES}::test_every_view_shows_users_what_they_may_read"
_READS: Final = f"tests/security/{_PAGES}::test_what_a_rule_reads_is_read_with_the_rights_of_the_viewer"
_LABELS: Final = f"tests/security/{_PAGES}::test_labels_of_a_namespace_are_for_those_who_may_get_it"
_ACCESS: Final = "tests/unit/ui/access/test_access.py"
_VIEWERHOST: Final = "tests/unit/ui/access/test_viewerhost.py"
_RIGHTS: Final = "tests/unit/ui/access/test_rights.py"
_METRICS: Final = "tests/unit/ui/server/test_metrics.py"

LOGINS: Final[tuple[Guard, ...]] = (
    # ------------------------------------------------------------------------------------------------------- rights
    guard(
        "I19", "the default are the rights of the user", _SWEEP,
        ("cli/ui/access.py", '"all"'),
    ),
    guard(
        "I19", "requests have a viewer", f"{_SWEEP} {_READS} {_LABELS}",
        ("ui/access/login.py", "VIEWER.set(None)"),
    ),
    guard(
        "I19", "what is shown is asked for the viewer", f"{_SWEEP} {_READS} {_LABELS}",
        ("ui/access/viewer.py", "True"),
    ),
    guard(
        "I19", "the pages show no Secret", f"{_SWEEP} {_VIEWERHOST}::test_an_entry_of_secrets_is_for_nobody",
        ("ui/access/viewer.py",),
    ),
    guard(
        "I19", "the object of a report is asked for the viewer", _SWEEP,
        ("cli/ui/inspector.py",),
    ),
    guard(
        "I19", "policies are asked",
        f"tests/security/{_PAGES}::test_a_policy_reads_the_same_whether_it_exists",
        ("cli/ui/inspector.py", "policies"),
    ),
    guard("I19", "labels of a namespace are shown to its viewers", _LABELS, (_SEEN,)),
    guard("I19", "labels are asked for the user", _LABELS, ("ui/server/namespaces.py", "own")),
    guard(
        "I19", "a claimed version must be served",
        "tests/unit/cli/ui/test_claims.py::test_a_claim_that_names_no_single_object_is_refused",
        (_SEEN,),
    ),
    guard(
        "I19", "the scope of a claim is that of the kind",
        "tests/unit/cli/ui/test_claims.py::test_a_claim_that_names_no_single_object_is_refused",
        (_SEEN,),
    ),
    guard(
        "I19", "an API call of a rule is asked for the viewer",
        f"{_READS} {_VIEWERHOST}::test_a_read_without_the_right_is_not_sent", (_HOST,),
    ),
    guard(
        "I19", "a ConfigMap of a rule is asked for the viewer",
        f"{_READS} {_VIEWERHOST}::test_a_read_without_the_right_is_not_sent", (_HOST,),
    ),
    guard(
        "I19", "the source of an entry is asked for the viewer",
        f"{_READS} {_VIEWERHOST}::test_an_entry_of_secrets_is_for_nobody", (_HOST,),
    ),
    guard(
        "I19", "an object of a rule is asked",
        f"{_VIEWERHOST}::test_a_read_without_the_right_is_not_sent", (_HOST,),
    ),
    guard(
        "I19", "a list of a rule is asked for the viewer",
        f"{_VIEWERHOST}::test_a_read_without_the_right_is_not_sent", (_HOST,),
    ),
    guard(
        "I19", "no service answers a viewer",
        f"{_VIEWERHOST}::test_an_entry_of_an_unclear_source_is_for_no_viewer", (_HOST,),
    ),
    guard(
        "I19", "images are anonymous", f"{_VIEWERHOST}::test_images_are_read_without_credentials",
        (_HOST, "self._source.resolve(images)"),
    ),
    guard(
        "I19", "the pages of the server write nothing", f"{_ACCESS}::test_nothing_is_written",
        ("ui/access/access.py",),
    ),
    guard(
        "I19", "all reports are asked", f"{_RIGHTS}::test_every_kind_of_reports_that_the_cluster_serves_is_asked",
        ("ui/access/rights.py",),
    ),
    guard(
        "I19", "no login has a name of Kubernetes", f"{_RIGHTS}::test_a_login_never_speaks_for_kubernetes_itself",
        ("ui/access/rights.py", "person"),
    ),
    guard(
        "I19", "results are of their namespace",
        "tests/unit/report/test_collected.py::test_a_result_without_an_object_is_of_the_namespace_of_its_report",
        ("report/collected.py", '_read_text(body, "namespace")'),
    ),
    guard(
        "I19", "names of Secrets are for those who see all namespaces",
        "tests/unit/ui/server/test_targets.py::test_names_of_secrets_are_for_those_who_see_all_namespaces",
        ("ui/server/targets.py", "True"),
    ),
    guard(
        "I19", "metrics are behind the login",
        f"{_METRICS}::test_metrics_on_the_port_of_the_pages_are_behind_the_login",
        ("ui/access/login.py", '("/healthz", "/ready", "/login", "/login/callback", "/metrics")'),
    ),
    guard(
        "I19", "metrics need an address", "logins::test_metrics_beside_a_login_need_an_address_of_their_own",
        ("cli/ui/run.py",),
    ),
    # ------------------------------------------------------------------------------------------------------- logins
    guard(
        "I19", "only listed algorithms sign a login",
        "logins::test_a_header_that_is_wrong_by_itself_refuses_the_login", (_TOKENS,),
    ),
    guard(
        "I19", "a header that changes the meaning refuses the login",
        "logins::test_a_header_that_is_wrong_by_itself_refuses_the_login", (_TOKENS,),
    ),
    guard(
        "I19", "a token of another type is no login",
        "logins::test_a_header_that_is_wrong_by_itself_refuses_the_login", (_TOKENS,),
    ),
    guard(
        "I19", "a login needs the signature of its issuer",
        "logins::test_a_key_of_the_token_is_no_key_of_the_issuer logins::test_no_shared_secret_signs_a_login "
        "logins::test_another_form_of_a_token_is_no_token", (_TOKENS,),
    ),
    guard(
        "I19", "twin: a usual header is accepted", "logins::test_a_usual_header_is_accepted",
        (_TOKENS, "if any(name in header for name in _REFUSED)", 'if set(header) > {"alg", "kid"}'),
    ),
    guard(
        "I19", "the claims of a login are checked",
        "logins::test_a_claim_that_is_wrong_by_itself_refuses_the_login "
        "logins::test_a_claim_that_is_missing_refuses_the_login", (_TOKENS,),
    ),
    guard(
        "I19", "a login was given to this client",
        "logins::test_a_token_of_several_clients_was_given_to_this_one", (_TOKENS,),
    ),
    guard(
        "I19", "a token belongs to one login",
        "logins::test_a_claim_that_is_wrong_by_itself_refuses_the_login", (_TOKENS,),
    ),
    guard("I19", "one claim names the user", "logins::test_one_claim_names_the_user", (_CLAIMS,)),
    guard(
        "I19", "an e-mail address is verified",
        "logins::test_an_address_that_the_issuer_has_not_verified_names_no_user", (_CLAIMS,),
    ),
    guard(
        "I19", "users of issuers differ", "logins::test_names_have_the_prefix_that_the_api_server_gives_them",
        (_CLAIMS, '""'),
    ),
    guard(
        "I19", "groups are texts", "logins::test_groups_that_are_no_texts_refuse_the_login",
        (_CLAIMS,),
    ),
)  # fmt: skip
