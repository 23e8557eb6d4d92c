"""The guards that the security tests check, with the edits that remove each: a module for each part of the register.

Nothing here may import the package: the source is text to it.
"""

from __future__ import annotations

from typing import Final

from tests.security.guards.admission import ADMISSION
from tests.security.guards.advisories import ADVISORIES
from tests.security.guards.certificates import CERTIFICATES
from tests.security.guards.claims import CLAIMS
from tests.security.guards.confinement import CONFINEMENT
from tests.security.guards.containment import CONTAINMENT
from tests.security.guards.controllers import DELETIONS, WRITES
from tests.security.guards.costs import ANSWERS, GROWTH, PATTERNS, PRICES
from tests.security.guards.data import INERT, SILENT
from tests.security.guards.doors import DOORS
from tests.security.guards.egress import EGRESS
from tests.security.guards.failing import FAILING
from tests.security.guards.git import GIT
from tests.security.guards.guard import Edit, Guard
from tests.security.guards.images import VERIFICATION
from tests.security.guards.judgedtree import JUDGED_TREE
from tests.security.guards.limits import LIMITS
from tests.security.guards.logins import LOGINS
from tests.security.guards.many import MANY
from tests.security.guards.meaning import MEANING
from tests.security.guards.memory import MEMORY
from tests.security.guards.peers import PEERS
from tests.security.guards.questions import QUESTIONS
from tests.security.guards.revocation import REVOCATION
from tests.security.guards.rights import RIGHTS
from tests.security.guards.rows import ROWS
from tests.security.guards.signatures import SIGNATURES
from tests.security.guards.sinks import SINKS
from tests.security.guards.supply import SUPPLY
from tests.security.guards.web import WEB

__all__ = ["GUARDS", "WITHOUT_GUARD", "Edit", "Guard"]

GUARDS: Final = (
    *CONFINEMENT,
    *EGRESS,
    *FAILING,
    *LIMITS,
    *INERT,
    *CONTAINMENT,
    *DOORS,
    *ADMISSION,
    *GROWTH,
    *ANSWERS,
    *PATTERNS,
    *SILENT,
    *ADVISORIES,
    *WRITES,
    *DELETIONS,
    *PRICES,
    *MEMORY,
    *SIGNATURES,
    *REVOCATION,
    *VERIFICATION,
    *WEB,
    *PEERS,
    *CERTIFICATES,
    *GIT,
    *ROWS,
    *JUDGED_TREE,
    *QUESTIONS,
    *CLAIMS,
    *RIGHTS,
    *MEANING,
    *MANY,
    *SINKS,
    *LOGINS,
    *SUPPLY,
)
"""Every guard; `python -m tests.security.mutants` takes each away."""

WITHOUT_GUARD: Final = {
    "test_source.py": "looks at the source; its own test plants what it must find",
    "test_claims.py": "looks at the source; its own test plants what it must find",
    "test_guards.py": "looks at this table",
    "test_trust.py": "looks at the source and the trust table",
    "test_most_of_these_rules_err": "looks at the other test of its file",
    "test_a_call_on_large_arguments_ends_soon": "takes the time, at night only; its twins count steps",
    "test_every_site_was_hit": "looks at the other tests of its file",
    "test_every_room_is_reached": "looks at the other tests of its file",
    "test_every_command_is_run_or_has_a_reason": "looks at the other tests of its file",
    "test_sandbox_faults.py": "its subject is the sandbox, and guards are of pyverno",
    "test_every_kind_of_target_is_tested": "looks at the other test of its file",
    "test_git_itself_runs_the_programs_of_the_tree": "looks at the other tests of its file",
    "test_every_command_is_silent_or_has_a_reason": "looks at the other tests of its file",
    "test_every_question_is_in_the_table": "looks at the other test of its file",
    "test_few_modules_make_a_system_that_looks_names_up": "looks at the source",
    "test_every_scan_knows_about_links": "looks at the source",
    "test_every_command_with_folders_names_what_it_leaves_out": "looks at the source",
    "test_register.py": "looks at the register",
    "test_external_addresses_of_services_are_denied": "its guard is a policy of the library, which is no module",
    "test_every_policy_for_pods_in_the_library_sees_what_changes_a_pod": "its guards are policies of the library",
    "test_an_unreadable_folder_is_said": "does not run for root, who can read every folder",
}
"""Tests that no guard can be named for, by file or node id, with the reason."""
