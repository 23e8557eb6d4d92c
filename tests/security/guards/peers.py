# ruff: noqa: E501 - texts of the source stand here as they are there
"""The guards of clients against their peers: I3 (no peer chooses where to go), I9 (bytes, values, time, retries)."""

from __future__ import annotations

from typing import Final

from tests.security.guards.guard import guard

__all__ = ["PEERS"]

_CONNECTOR: Final = "connector.py"
_OIDC: Final = "ui/access/oidc.py"
_TOKENS: Final = "ui/access/idtokens.py"
_SMTP: Final = "ui/notifications/smtp.py"
_MAIL: Final = "mail_peers::test_no_answer_of_a_mail_server_is_more_than_an_error"
_CALLS: Final = "lang/cel/libraries/kyverno/hostcalls.py"

PEERS: Final = (
    guard(
        "I3", "no peer sends a client to a metadata service",
        "peers::test_no_redirect_leads_to_a_metadata_service[downloads]"
        " peers::test_every_form_of_a_metadata_service_is_refused",
        (_CONNECTOR, 'if leads_to_metadata(ip_address(str(place[0]).partition("%")[0])):', "if False:"),
    ),
    guard(
        "I3", "twin: other link-local and local addresses are dialled",
        "peers::test_a_neighbour_of_the_metadata_services_is_dialled",
        (_CONNECTOR, 'if leads_to_metadata(ip_address(str(place[0]).partition("%")[0])):', "if True:"),
    ),
    guard(
        "I9", "a watch has to begin", "peers::test_no_answer_of_a_peer_is_more_than_an_error[watches-announcements-without-end]",
        ("cluster/client.py", "async with asyncio.timeout(_HEAD_SECONDS):", "async with asyncio.timeout(None):"),
        may_hang=True,
    ),
    guard(
        "I9", "short answers have a time", "peers::test_a_peer_that_says_nothing_in_tls_is_given_up[writes]",
        ("cluster/client.py", "self._send_directly, _SHORT_SECONDS, _SHORT)", "self._send_directly, 1e9, _SHORT)"),
    ),
    guard(
        "I9", "bodies are read to their end",
        "peers::test_a_body_may_come_in_pieces peers::test_a_long_answer_is_read_to_its_end",
        (_CONNECTOR, "while len(found) <= most and (part := await content.read(most + 1 - len(found))):",
         "if part := await content.read(most + 1):"),
    ),
    guard(
        "I9", "logins share a failure", "peers::test_logins_share_the_failure_of_a_silent_issuer",
        (_OIDC, "if self._failed is not None and 0 <= self._now() - self._failed[0] < _SILENT_SECONDS:", "if False:"),
    ),
    guard(
        "I9", "twin: a failure of an issuer ends", "peers::test_a_failure_of_an_issuer_ends",
        (_OIDC, "0 <= self._now() - self._failed[0] < _SILENT_SECONDS", "self._failed"),
    ),
    guard(
        "I9", "a key set has few keys", "peers::test_a_key_set_has_few_keys",
        (_OIDC, "found[:_MOST_KEYS]", "found"),
    ),
    guard(
        "I9", "keys of the issuer have usual sizes", "peers::test_keys_of_other_sizes_are_not_tried",
        (_TOKENS, "return found if is_safe else None", "return found"),
        (_TOKENS, " or any(len(public[name]) > most for name, most in _LONGEST.items())", ""),
    ),
    guard(
        "I9", "a key that is none leaves the others", "peers::test_a_key_that_is_none_leaves_the_others",
        (_TOKENS, "except (JoseError, ValueError, TypeError, KeyError):", "except JoseError:"),
    ),
    guard(
        "I9", "an answer of a service has so many values", "peers::test_the_answer_of_a_service_has_so_many_values",
        ("cluster/egress.py", "if has_more_values(body, MAX_VALUES):", "if False:"),
    ),
    guard(
        "I9", "an answer in CEL has so many values", "peers::test_the_answer_of_a_service_has_so_many_values_in_cel",
        (_CALLS, "if has_more_values(body, MAX_ANSWER_VALUES):", "if False:"),
    ),
    guard(
        "I9", "answers of a review are counted by their values",
        "peers::test_the_values_of_all_answers_of_a_review_are_counted",
        (_CALLS, "value = with_doubles(decode(body), evaluation.runtime.budget)", "value = with_doubles(decode(body))"),
        ("engine/cel/brokerhost.py", "_READ_BYTES_PER_STEP: Final = 32", "_READ_BYTES_PER_STEP: Final = 64"),
    ),
    guard(
        "I9", "a conversation with a mail server has a time", "mail_peers::test_a_mail_server_that_says_little_at_a_time_is_given_up",
        (_SMTP, ".call_later(_SECONDS, conversation.end)", ".call_later(1e9, conversation.end)"), may_hang=True,
    ),
    guard(
        "I9", "replies of mail servers have a size", f"{_MAIL}[none-EHLO-lines-without-end]",
        (_SMTP, "if self._left < 0:", "if False:"),
    ),
    guard(
        "I9", "a mail that was taken is not sent again", f"{_MAIL}[none-QUIT-nothing]",
        (_SMTP, "with suppress(smtplib.SMTPException, OSError):", "with suppress(KeyError):"),
        (_SMTP, 'client.putcmd("quit")', "client.quit()"),
    ),
    guard(
        "I9", "a recipient that is refused is noticed",
        "tests/unit/ui/notifications/targets/test_mail.py::test_a_recipient_that_is_refused_is_noticed",
        (_SMTP, "        if refused:\n", "        if not recipients:\n"),
    ),
    guard(
        "I9", "mail servers hold up no other target", "mail_peers::test_silent_mail_servers_hold_up_nothing_else",
        (_SMTP, "await in_pool(threads, ", "await in_pool(None, "),
    ),
    guard(
        "I4", "no login without TLS", "mail_peers::test_a_mail_server_without_tls_gets_nothing",
        (_SMTP, 'if self._server.encryption == "starttls":', "if False:"),
    ),
    guard(
        "I3", "certificates of mail servers are checked",
        "mail_peers::test_a_mail_server_with_a_certificate_of_others_gets_nothing",
        (_SMTP, "return self._server.tls.wrap_socket(plain, server_hostname=host)",
         "return ssl._create_unverified_context().wrap_socket(plain, server_hostname=host)"),
    ),
    guard(
        "I9", "answers of targets are values", "target_peers::test_no_value_of_an_answer_is_more_than_an_error[elasticsearch]",
        ("ui/notifications/targets/elasticsearch.py", "(items if isinstance(items, list) else ())", "(items or ())"),
    ),
    guard(
        "I9", "trust roots have a time", "peers::test_no_answer_of_a_peer_is_more_than_an_error[roots-silence]",
        ("registry/tuffetcher.py", "asyncio.timeout(max(left, 0.0))", "asyncio.timeout(None)"), may_hang=True,
    ),
    guard(
        "I3", "trust roots come from no metadata service",
        "peers::test_no_redirect_leads_to_a_metadata_service[roots]",
        ("registry/tuffetcher.py", "connector=ForeignConnector()", "connector=aiohttp.TCPConnector()"),
    ),
)  # fmt: skip
