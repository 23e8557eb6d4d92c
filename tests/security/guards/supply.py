"""The guards of what a process loads: I16, no module of the folder in which a command runs."""

from __future__ import annotations

from typing import Final

from tests.security.guards.guard import Guard, guard

__all__ = ["SUPPLY"]

_TEST: Final = "tests/security/strangers/test_hostile_folder.py::test_"

SUPPLY: Final[tuple[Guard, ...]] = (
    guard(
        "I16",
        "a process takes no module of the working folder",
        f"{_TEST}no_process_of_a_command_takes_a_module_of_the_working_folder[apply]",
        ("__main__.py",),
    ),
    guard(
        "I16",
        "no playground by stray modules",
        f"{_TEST}the_playground_takes_no_module_of_the_working_folder",
        ("ui/playground/workers.py", '("-m", "pyverno.ui.playground.worker")'),
    ),
    guard(
        "I18",
        "a log without a time is valid",
        "tests/unit/images/verification/test_verify.py::test_a_log_out_of_use_does_not_count_without_a_time_either",
        ("images/verification/logentry.py",),
    ),
    guard(
        "I16",
        "a download has the digest of its address",
        "tests/unit/offline/test_manifests.py::test_another_content_than_the_address_names_is_an_error",
        ("offline/manifests.py",),
    ),
)
