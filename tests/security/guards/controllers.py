# ruff: noqa: E501 - texts of the source stand here as they are there
"""The guards of writes and deletions by controllers: loops of policies (C7), clocks and confirmations (C9)."""

from __future__ import annotations

from typing import Final

from tests.security.guards.guard import guard

__all__ = ["DELETIONS", "WRITES"]

_CLEANUP: Final = "tests/unit/controllers/cleanup"

WRITES: Final = (
    guard(
        "C7", "policies that undo each other are quarantined",
        "tests/unit/controllers/test_writeguard.py::test_ten_writes_without_a_pause_are_the_last"
        " tests/unit/controllers/test_applier.py::test_an_object_that_something_else_changes_back_is_quarantined",
        ("controllers/writeguard.py", "if window.writes >= max(settings.max_writes, len(window.triggers) + settings.max_writes // 2):", "if False:"),
    ),
    guard(
        "C7", "policies that trigger each other are quarantined",
        "tests/unit/controllers/test_writeguard.py::test_a_chain_of_objects_that_trigger_each_other_ends",
        ("controllers/writeguard.py", "elif self._depth(key.trigger, now) >= self._settings.max_writes:", "elif False:"),
    ),
    guard(
        "C7", "a deletion is of what was judged",
        "tests/unit/controllers/test_applier.py::test_only_the_evaluated_object_is_deleted",
        ("controllers/applier.py", 'options: JSONObject = {"preconditions": judged}', "options: JSONObject = {}"),
    ),
    guard(
        "C7", "a patch is of the version that was read",
        "tests/unit/controllers/test_applier.py::test_a_patch_has_the_version_that_was_read_as_its_precondition",
        ("controllers/applier.py", '**after["metadata"], "resourceVersion": version}', '**after["metadata"], "resourceVersion": None}'),
    ),
    guard(
        "C7", "a rule writes what its requester may write, where the policy says so",
        "tests/unit/controllers/background/test_requester.py::test_what_the_requester_may_not_write_is_not_written",
        ("controllers/applier.py", "if cause.requester is None:", "if True:"),
    ),
    guard(
        "C7", "a misspelt restriction to the requester is no permission",
        "tests/unit/controllers/background/test_requester.py::test_another_value_of_the_annotation_writes_nothing",
        ("controllers/background/requester.py", "    if value != _REQUESTER:\n", "    if False:\n"),
    ),
)  # fmt: skip

DELETIONS: Final = (
    guard(
        "C9", "a time to live is over by the API server's clock",
        f"{_CLEANUP}/test_timestolive.py::test_a_label_can_be_changed_and_removed",
        ("controllers/cleanup/timestolive.py", "        if due > self._context.now():\n", "        if False:\n"),
        ("controllers/cleanup/agenda.py", "if when > now and self._times.get(key) == when:", "if False:"),
    ),
    guard(
        "C9", "a server's time is its lower bound",
        "tests/unit/cluster/test_servertime.py::test_the_time_is_never_ahead_of_the_server",
        ("cluster/servertime.py", "lower, upper = moment - received, moment + 1 - sent",
         "lower, upper = moment + 1 - received, moment + 2 - sent"),
    ),
    guard(
        "C9", "of clocks that disagree the slowest counts",
        "tests/unit/cluster/test_servertime.py::test_of_servers_that_disagree_the_slowest_counts",
        ("cluster/servertime.py", "return lower if lower <= upper else min(each.lowest for each in self._periods)",
         "return lower"),
    ),
    guard(
        "C9", "what is protected is not deleted",
        f"{_CLEANUP}/test_protection.py::test_the_reason_to_keep_an_object_is_named",
        ("controllers/cleanup/protection.py", "name in (*_SYSTEM_NAMESPACES, own_namespace)", "name == own_namespace"),
    ),
    guard(
        "C9", "many deletions wait for a confirmation",
        f"{_CLEANUP}/test_scheduled.py::test_too_many_objects_wait_for_a_confirmation",
        ("controllers/cleanup/run.py", "if limit and count > max(limit, self._confirmed):", "if False:"),
    ),
)  # fmt: skip
