"""The guards of outgoing calls: addresses that they may reach (I3), credentials and answers (I4)."""

from __future__ import annotations

from typing import Final

from tests.security.guards.guard import guard

__all__ = ["EGRESS"]

_RULES: Final = "cluster/egressrules.py"
_EGRESS: Final = "cluster/egress.py"
_URL: Final = "cluster/serviceurl.py"

EGRESS: Final = (
    guard(
        "I3", "addresses are held against the ranges",
        "egress::test_this_machine_and_metadata_services_are_blocked_by_default"
        " egress::test_ranges_that_an_operator_blocks_are_blocked"
        " egress::test_a_name_with_one_bad_address_is_not_called"
        " egress::test_the_address_that_is_dialled_is_judged_by_itself",
        (_RULES, "if each in network:", "if False:"),
    ),
    guard(
        "I3", "twin: other addresses are open",
        "egress::test_neighbours_of_blocked_ranges_are_open egress::test_without_the_guard_the_same_name_is_called",
        (_RULES, "if each in network:", "if True:"),
    ),
    guard(
        "I3", "addresses inside of addresses are judged", "egress::test_an_address_inside_of_another_is_judged",
        (_RULES, "for each in (address, *embedded_addresses(address)):", "for each in (address,):"),
    ),
    guard(
        "I3", "metadata services behind any translator are recognized",
        "tests/unit/cluster/test_egressrules.py"
        "::test_metadata_services_are_recognized_behind_translators_that_nothing_marks",
        (_RULES, "if carries_metadata(address):", "if False:"),
    ),
    guard(
        "I3", "URLs with credentials are refused", "egress::test_what_can_be_read_in_two_ways_is_not_called",
        (_URL, 'if "@" in text:', "if False:"),
        (_URL, "if len(text) > 253 or not all(0 < len(label) <= 63 and _NAME.issuperset(label) for label in labels):",
         "if False:"),
    ),
    guard(
        "I3", "addresses in other than the usual form are refused",
        "egress::test_what_can_be_read_in_two_ways_is_not_called",
        (_URL, 'return not (last.isdecimal() or last.startswith("0x"))', "return True"),
    ),
    guard(
        "I3", "dot segments of services are refused", "egress::test_what_can_be_read_in_two_ways_is_not_called",
        (_URL, 'if any(segment in (".", "..") for segment in after.replace("\\\\", "/").split("/")):', "if False:"),
    ),
    guard(
        "I3", "ports of other protocols are refused", "egress::test_what_can_be_read_in_two_ways_is_not_called",
        (_URL, "if port in _OTHER_PROTOCOLS:", "if False:"),
    ),
    guard(
        "I3", "names on the list are blocked", "egress::test_names_of_metadata_services_are_blocked_in_every_spelling",
        (_RULES, "if url.name in self.hosts:", "if False:"),
    ),
    guard(
        "I3", "all addresses of a name are judged", "egress::test_a_name_with_one_bad_address_is_not_called",
        (_EGRESS, "self._rules.check_address(address, host)", "pass"),
    ),
    guard(
        "I3", "what was judged is what is dialled",
        "egress::test_a_name_is_resolved_once_and_what_was_judged_is_dialled",
        (_EGRESS, "        return [\n            ResolveResult(",
         "        addresses = [ip_address(text) for text in await self._lookup(host, port)]\n"
         "        return [\n            ResolveResult("),
    ),
    guard(
        "I3", "a last look at the address of the socket",
        "egress::test_the_address_that_is_dialled_is_judged_by_itself",
        (_EGRESS, 'self._settings.rules.check_address(ip_address(str(place[0])), "the service")', "pass"),
    ),
    guard(
        "I3", "no redirect is followed", "egress::test_no_redirect_is_followed",
        (_EGRESS, "allow_redirects=False", "allow_redirects=True"),
    ),
    guard(
        "I3", "no proxy of the environment", "egress::test_no_proxy_is_taken_from_the_environment",
        (_EGRESS, "trust_env=False", "trust_env=True"),
    ),
    guard(
        "I3", "answers have a size", "egress::test_an_endless_answer_is_cut_off",
        (_EGRESS, "if most and total > most:", "if total > 40_000_000:\n                break\n            if False:"),
    ),
    guard(
        "I3", "answers are not unpacked", "egress::test_a_small_answer_does_not_become_a_large_one",
        (_EGRESS, "auto_decompress=False", "auto_decompress=True"),
    ),
    guard(
        "I3", "servers of mail are held against the ranges",
        "tests/unit/ui/notifications/targets/test_mail.py::test_the_guard_judges_what_a_name_resolves_to",
        ("ui/notifications/smtp.py",
         'rules.check_address(ip_address(str(place[0]).partition("%")[0]), server.host)', "pass"),
    ),
    guard(
        "I4", "no cookies", "egress::test_nothing_of_ours_goes_along",
        (_EGRESS, "cookie_jar=aiohttp.DummyCookieJar(),", ""),
    ),
    guard(
        "I4", "our own token is no token for services",
        "tests/unit/cluster/test_egress.py::test_the_service_account_token_is_never_sent_to_services",
        (_EGRESS, "if self.token_file is not None and self.token_file.absolute().is_relative_to(SERVICE_ACCOUNT):",
         "if False:"),
    ),
    guard(
        "I4", "without the guard no service is called",
        "admission::test_our_credential_goes_to_the_api_server_only",
        ("cluster/host.py", "        if self._egress is None:\n", "        if False:\n"),
    ),
    guard(
        "I4", "the body of a failed answer stays out of errors",
        "failing_closed::test_the_body_of_an_answer_never_shows",
        ("offline/host.py", 'raise HostError(f"HTTP {answer.status}")', 'raise HostError(f"HTTP {answer.body}")'),
    ),
    guard(
        "I4", "what a broken API server says stays out of errors",
        "admission::test_the_answer_of_a_broken_api_server_is_not_shown",
        ("cluster/answers/reading.py",
         'raise StatusError(status, "", f"the server answered `{method} {path}` with status {status}")',
         'raise StatusError(status, "", answer.decode())'),
    ),
)  # fmt: skip
