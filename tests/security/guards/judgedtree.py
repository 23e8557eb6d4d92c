# ruff: noqa: E501 - texts of the source stand here as they are there
"""The guards of I16: what lies in a judged tree, or beside it, commands nothing."""

from __future__ import annotations

from typing import Final

from tests.security.guards.guard import Guard, guard

__all__ = ["JUDGED_TREE"]

_STRANGER: Final = "tests/security/strangers/test_hostile_repository.py::test_"
_SETTINGS: Final = "cli/config/settings.py"
_ROLES: Final = "cli/config/roles.py"

JUDGED_TREE: Final[tuple[Guard, ...]] = (
    guard(
        "I16", "a found file selects and formats only",
        f"judgedtree::test_a_found_file_selects_and_formats_only judgedtree::test_a_refusal_names_every_setting_at_once {_STRANGER}a_hook_refuses_a_hostile_configuration",
        (_SETTINGS, '""'),
    ),
    guard(
        "I16", "twin: a named file sets what it names", "judgedtree::test_a_named_file_sets_the_same_keys",
        (_SETTINGS, "_refusal(flag, value, folder) if is_found else", "_refusal(flag, value, folder) if True else"),
    ),
    guard(
        "I16", "twin: a found file forms the output", f"judgedtree::test_the_roles_that_a_found_file_may_have_are_three {_STRANGER}a_hook_works_in_a_repository_with_settings",
        (_ROLES, 'Rights("forms the output", in_found=True)', 'Rights("forms the output")'),
    ),
    guard(
        "I16", "secrets and flags without a role are in no file", "judgedtree::test_a_flag_without_a_role_is_in_no_file",
        (_SETTINGS,),
    ),
    guard(
        "I16", "every flag has a role", "judgedtree::test_every_flag_of_a_configuration_has_a_role",
        ("cli/args/flags.py", 'metavar="REV",\n        role="once",', 'metavar="REV",'),
    ),
    guard(
        "I16", "every command with a configuration has roles", "judgedtree::test_only_these_commands_read_a_configuration",
        ("cli/equivalent/command.py", "            SEED,\n", '            SEED,\n            value("--config", help=""),\n'),
    ),
    guard(
        "I16", "a found file names no address", "judgedtree::test_a_found_file_names_no_address",
        (_SETTINGS,),
    ),
    guard(
        "I16", "a found file names no path outside", "judgedtree::test_a_found_file_names_no_path_outside",
        (_SETTINGS,),
    ),
    guard(
        "I16", "twin: paths may stay in the repository", "judgedtree::test_a_found_file_names_paths_of_its_repository judgedtree::test_a_found_file_is_no_link_out",
        ("cli/bounds.py", "if not any(is_inside(Path(each), root) for root in bounds):", "if True:"),
    ),
    guard(
        "I16", "a found file is no link out", "judgedtree::test_a_found_file_is_no_link_out",
        (_SETTINGS,),
    ),
    guard(
        "I16", "a file of another user configures nothing", "judgedtree::test_a_file_of_another_user_configures_nothing",
        ("cli/args/configpath.py", "True"),
    ),
    guard(
        "I16", "words after two hyphens are names of files", "judgedtree::test_words_after_two_hyphens_are_names_of_files",
        ("cli/args/configpath.py",),
    ),
    guard(
        "I16", "what is left out is counted",
        f"judgedtree::test_what_apply_leaves_out_is_counted judgedtree::test_a_run_without_anything_left_is_an_error {_STRANGER}a_check_is_not_switched_off_in_silence",
        ("offline/folders.py",),
    ),
    guard(
        "I16", "a run without resources is an error", "judgedtree::test_a_run_without_anything_left_is_an_error",
        ("cli/apply/load.py", "if not inputs.manifests and not inputs.checks:", "if False:"),
    ),
    guard(
        "I16", "what lint leaves out is counted", "judgedtree::test_what_lint_leaves_out_is_counted",
        ("cli/lint/run.py",),
    ),
    guard(
        "I16", "findings that comments suppress are counted", "judgedtree::test_what_lint_leaves_out_is_counted",
        ("compiler/lints/run.py",),
    ),
    guard(
        "I16", "rows that are not run are counted", "judgedtree::test_what_test_leaves_out_is_counted",
        ("cli/test/run.py",),
    ),
    guard(
        "I16", "test files of another name are counted", "judgedtree::test_what_test_leaves_out_is_counted",
        ("cli/test/run.py",),
    ),
    guard(
        "I16", "patterns come from no file outside", "judgedtree::test_patterns_come_from_no_file_outside",
        ("offline/folders.py",),
    ),
    guard(
        "I16", "objects that the user gives replace those that are judged", "judgedtree::test_objects_of_the_user_replace_those_that_are_judged",
        ("cli/apply/load.py", "True"),
    ),
    guard(
        "I16", "entries of the policies win", "judgedtree::test_global_entries_of_the_policies_win",
        ("offline/session.py", "{**entry_data(policies.global_entries, objects), **others}"),
    ),
    guard(
        "I16", "the name of test files is no path", "judgedtree::test_the_name_of_test_files_is_no_path",
        ("cli/test/run.py",),
    ),
    guard(
        "I16", "tests that are found have a tree",
        f"judgedtree::test_tests_that_are_found_stay_in_their_tree {_STRANGER}no_file_of_a_hostile_repository_commands_anything",
        ("cli/test/find.py", "roots"),
    ),
    guard(
        "I16", "a collected test names files of pytest's root only", "judgedtree::test_a_collected_test_stays_in_the_root_of_pytest",
        ("pytest_plugin.py", "()"),
    ),
    guard(
        "I16", "no kubeconfig is searched in the working folder",
        f"judgedtree::test_no_kubeconfig_is_searched_in_the_working_folder {_STRANGER}no_kubeconfig_of_a_hostile_repository_is_used",
        ("cluster/access.py", "True"),
    ),
    guard(
        "I16", "every kubeconfig is named by a flag", "judgedtree::test_every_kubeconfig_comes_from_the_command_line_or_the_environment",
        ("cli/migrate/storage.py", "load_kubeconfig(kubeconfig, context, os.environ)", 'load_kubeconfig(kubeconfig or "kubeconfig", context, os.environ)'),
    ),
    guard(
        "I16", "no credentials are searched in the working folder", "judgedtree::test_no_credentials_are_searched_in_the_working_folder",
        ("registry/dockerconfig.py", "folder"),
    ),
    guard(
        "I16", "twin: the user's own kubeconfig runs its plugin", f"{_STRANGER}the_audit_sees_what_a_command_does",
        ("cluster/access.py", 'found["exec_plugin"] = _plugin(user, plugin)', "pass"),
    ),
    guard(
        "I16", "every command is run in a hostile repository", f"{_STRANGER}every_command_is_run_in_a_hostile_repository",
        ("cli/root.py", '    "version": Row(_version, "Print the version."),\n', ""),
    ),
)  # fmt: skip
