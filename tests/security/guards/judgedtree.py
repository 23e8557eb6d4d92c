# ruff: noqa: E501 - texts of the source stand here as they are there
"""The guards of I16: what lies in a judged tree, or beside it, commands nothing."""

from __future__ import annotations

from typing import Final

from tests.security.guards.guard import Guard, guard

__all__ = ["JUDGED_TREE"]

_STRANGER: Final = "tests/security/strangers/test_hostile_repository.py::test_"
_SETTINGS: Final = "cli/config/settings.py"
_ROLES: Final = "cli/config/roles.py"

_FOUND: Final[tuple[Guard, ...]] = (
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
_TREE: Final = "tests/security/strangers/test_hostile_tree.py::test_"
_CHARTS: Final = "tests/security/strangers/test_hostile_charts.py::test_"
_REPOSITORY: Final = "offline/git/repository.py"
_INSPECTION: Final = "offline/adoption/inspection.py"
_RENDERING: Final = "offline/adoption/rendering.py"
_RENDERER: Final = "offline/adoption/process.py"
_SEARCH: Final = "a search follows no link out of its root"

_PROGRAMS: Final[tuple[Guard, ...]] = (
    guard(
        "I16", "git reads a repository of ours",
        f"{_TREE}no_setting_of_the_tree_runs_a_program[extensions.partialClone] "
        f"{_TREE}all_settings_of_the_tree_at_once_run_no_program "
        f"{_TREE}an_included_file_of_the_tree_is_not_read",
        (_REPOSITORY, 'environment = {**os.environ, "GIT_DIR": str(own)}'),
    ),
    guard(
        "I16", "a folder that looks like a repository is none",
        f"{_TREE}a_folder_that_looks_like_a_repository_is_none",
        (_REPOSITORY, 'root if (root / "HEAD").is_file() and root.name != ".git" else root / ".git"'),
    ),
    guard("I16", "a file of git names a folder", f"{_TREE}a_git_file_leads_to_no_program", (_REPOSITORY,)),
    guard(
        "I16", "a repository of another user decides nothing",
        f"{_TREE}a_repository_of_another_user_decides_nothing", (_REPOSITORY,),
    ),
    guard(
        "I16", "no replaced object hides a change", f"{_TREE}the_tree_hides_no_change[replaced-commit]",
        ("offline/git/process.py", '    "GIT_NO_REPLACE_OBJECTS": "1",\n', ""),
    ),
    guard(
        "I16", "programs are in no relative folder",
        f"{_TREE}a_program_is_never_one_of_the_tree[git-.] {_TREE}doors_look_programs_up_in_absolute_folders",
        ("programs.py", "path.split(os.pathsep)"),
    ),
    guard(
        "I16", "twin: a worktree is read", f"{_TREE}a_worktree_is_read",
        (_REPOSITORY, '_follow(own / "commondir", own, "")', "own"),
    ),
    guard(
        "I16", "twin: a submodule is a repository", f"{_TREE}files_of_a_submodule_count_as_new",
        (_REPOSITORY, 'return (root, _follow(marker, root, "gitdir:")) if marker.is_file() else None', "return None"),
    ),
    guard(
        "I16", "twin: ends of lines are no change", f"{_TREE}ends_of_lines_are_no_change",
        ("offline/adoption/changes.py", 'content.replace(b"\\r\\n", b"\\n")', "content"),
    ),
    guard(
        "I16", "twin: packed references are read", f"{_TREE}packed_repositories_are_read[references]",
        (_REPOSITORY, '("packed-refs", "shallow")', '("shallow",)'),
    ),
    guard(
        "I16", "twin: branches follow branches", f"{_TREE}other_names_of_commits_are_understood",
        (_REPOSITORY, "if found is not None and _PLAIN.fullmatch(value):", "if False:"),
    ),
    guard(
        "I16", "twin: a shallow clone is read", f"{_TREE}a_shallow_clone_is_read",
        (_REPOSITORY, '("packed-refs", "shallow")', '("packed-refs",)'),
    ),
    guard(
        "I16", "a partial clone is one error", f"{_TREE}a_partial_clone_is_one_clear_error[blob:none]",
        (_REPOSITORY, "is_partial = any(", "is_partial = all("),
    ),
    guard(
        "I16", "twin: ids may be longer", f"{_TREE}other_kinds_of_repositories_are_read",
        (_REPOSITORY, '"extensions.objectformat": ', '"extensions.none": '),
    ),
    guard(
        "I16", "twin: the environment names a repository", f"{_TREE}the_repository_of_the_environment_is_read",
        (_REPOSITORY, 'given = os.environ.get("GIT_DIR")', 'given = ""'),
    ),
    guard(
        "I16", "a configuration that git cannot read is an error", f"{_TREE}a_damaged_repository_is_an_error",
        (_REPOSITORY,),
    ),
    guard(
        "I16", "a clone is written without filters", f"{_TREE}a_clone_runs_no_filter_of_the_user_for_a_stranger",
        ("offline/git/clone.py", "server_environment()"),
    ),
    guard(
        "I16", "a repository is read without configuration and servers",
        f"{_TREE}git_has_no_way_to_a_server_where_it_reads_a_tree",
        ("offline/git/process.py", "{**os.environ}"),
    ),
)  # fmt: skip

_RENDERED: Final[tuple[Guard, ...]] = (
    guard(
        "I16", "a kustomization names no other machine",
        f"{_CHARTS}no_base_is_on_another_machine[github.com/o/r] {_CHARTS}no_field_names_another_machine "
        f"{_CHARTS}no_spelling_of_yaml_hides_an_address {_CHARTS}a_base_of_a_base_is_inspected",
        (_INSPECTION,),
    ),
    guard(
        "I16", "a kustomization names nothing outside of its repository", f"{_CHARTS}no_base_is_outside_of_the_tree",
        (_INSPECTION,),
    ),
    guard(
        "I16", "a kustomization is no link out of its tree",
        f"{_CHARTS}a_kustomization_that_is_a_link_out_is_refused", (_INSPECTION,),
    ),
    guard("I16", "a kustomization runs no program", f"{_CHARTS}a_kustomization_runs_nothing[a-function]", (_INSPECTION,)),
    guard("I16", "a kustomization renders no chart", f"{_CHARTS}a_kustomization_runs_nothing[charts]", (_INSPECTION,)),
    guard(
        "I16", "a kustomization is inspected before it is built", f"{_CHARTS}no_base_is_on_another_machine",
        (_RENDERING,),
    ),
    guard(
        "I16", "twin: data of a kustomization is no address",
        f"{_CHARTS}usual_kustomizations_are_built[data-that-looks-like-addresses]",
        (_INSPECTION, "elif name not in _DATA:", "else:"),
    ),
    guard(
        "I16", "twin: the real programs build", f"{_CHARTS}the_real_programs_build_in_our_environment",
        (_RENDERING, 'command = [kubectl, "kustomize", _ROOT_ONLY, str(Path(folder).resolve())]', 'command = [kubectl]'),
    ),
    guard(
        "I16", "renderers have no way to other machines", f"{_CHARTS}what_an_inspection_would_miss_is_not_fetched",
        (_RENDERER, '"GIT_ALLOW_PROTOCOL": "",', ""),
        (_RENDERER, "for key in (name, name.lower())", "for key in ()"),
    ),
    guard(
        "I16", "renderers have an environment of their own", f"{_CHARTS}programs_have_an_environment_of_their_own",
        (_RENDERER, "dict(os.environ) if is_open else _closed(folder)", "dict(os.environ)"),
    ),
    guard(
        "I16", "twin: a flag gives the environment of the user",
        f"{_CHARTS}the_flag_gives_kustomize_the_environment_of_the_user",
        (_RENDERER, "dict(os.environ) if is_open else _closed(folder)", "_closed(folder)"),
    ),
    guard(
        "I16", "a chart has no links out of its repository", f"{_CHARTS}a_chart_has_no_link_out_of_its_tree",
        (_INSPECTION,),
    ),
    guard("I16", "a chart has no pipes", f"{_CHARTS}a_chart_has_no_pipes", (_INSPECTION,)),
    guard(
        "I16", "the name of a chart is a path", f"{_CHARTS}the_name_of_a_chart_is_no_address_and_no_flag",
        (_RENDERING, '_RELEASE, str(Path(chart).resolve()), "--inc', '_RELEASE, chart, "--inc'),
    ),
    guard(
        "I16", "values files are copies", f"{_CHARTS}the_name_of_a_values_file_is_no_address_and_no_flag",
        (_RENDERING, "contents = [read_file(Path(each)) for each in values]", "contents = []"),
    ),
)  # fmt: skip

_SILENCE: Final[tuple[Guard, ...]] = (
    guard(
        "I16", "no name is looked up offline",
        "offline_silence::test_no_offline_command_asks_another_machine[apply] "
        "offline_silence::test_no_question_to_an_offline_host_leaves_the_machine[lookup_host-a-session] "
        "offline_silence::test_the_recorder_hears_a_look_up",
        ("offline/system.py", "super().lookup_host(name)"),
    ),
    guard(
        "I16", "twin: a flag looks names up", "offline_silence::test_a_look_up_is_an_error_that_names_its_flag",
        ("cli/apply/load.py", "if options.dns:", "if False:"),
    ),
)  # fmt: skip

_LINKS: Final[tuple[Guard, ...]] = (
    guard(
        "I16", _SEARCH, "links::test_no_scan_follows_a_link_out_of_its_folder links::test_other_links_end_no_scan",
        ("offline/links.py", "False"),
    ),
    guard(
        "I16", "twin: links within a folder are followed", "links::test_links_within_a_folder_are_followed",
        ("offline/links.py", "return path.is_symlink() and not is_inside(path, self._root)", "return path.is_symlink()"),
    ),
    guard(
        "I16", "twin: a link may be named", "links::test_a_link_that_the_command_line_names_is_read",
        ("offline/files.py", "elif path.exists():", "elif path.exists() and not path.is_symlink():"),
    ),
    guard(
        "I16", "a suite names files of its tree", "links::test_a_suite_names_files_of_its_tree",
        ("cli/test/suitefolder.py", "if self.roots and outside(", "if False and outside("),
    ),
)  # fmt: skip

_REVIEWED: Final[tuple[Guard, ...]] = (
    guard(
        "I16", "an empty variable selects no configuration", "judgedtree::test_an_empty_variable_selects_no_configuration",
        (_SETTINGS,),
    ),
    guard(
        "I16", "a configuration is not nested without end", "judgedtree::test_a_configuration_is_not_nested_without_end",
        (_SETTINGS, "except RecursionError as error:", "except BufferError as error:"),
    ),
    guard(
        "I16", "a new link to an old file is a change", "judgedtree::test_a_new_link_to_an_old_file_is_a_change",
        ("offline/adoption/changes.py", "False"),
    ),
    guard(
        "I16", "names with a leading dot are counted", "judgedtree::test_what_apply_leaves_out_is_counted",
        ("offline/folders.py",),
    ),
)  # fmt: skip

JUDGED_TREE: Final[tuple[Guard, ...]] = (*_FOUND, *_PROGRAMS, *_RENDERED, *_SILENCE, *_LINKS, *_REVIEWED)
