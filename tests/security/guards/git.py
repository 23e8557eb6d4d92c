# ruff: noqa: E501 - texts of the source stand here as they are there
"""The guards against repositories and servers of git: I3 (where git goes), I9 (bytes, files, time, memory)."""

from __future__ import annotations

from typing import Final

from tests.security.guards.guard import guard

__all__ = ["GIT"]

_GIT: Final = "offline/git/clone.py"
_PROCESS: Final = "offline/git/process.py"
_PROGRAMS: Final = "programs.py"
_REPOSITORY: Final = "git::test_no_repository_reaches_beyond_its_folder_and_its_limits"
_STEP: Final = "git::test_no_step_of_git_goes_on_without_end"

GIT: Final = (
    guard(
        "I3", "git has no variables of the hook that it runs in", "git::test_a_hook_of_git_may_clone[GIT_INDEX_FILE]",
        (_PROCESS, 'if not key.startswith("GIT_") or key.startswith(_INHERITED)', "if True"),
    ),
    guard(
        "I3", "twin: git has the variables of servers", "git::test_what_reaches_a_server_is_kept",
        (_PROCESS, " or key.startswith(_INHERITED)", ""),
    ),
    guard(
        "I3", "git follows no redirect by itself", "git::test_a_password_is_for_the_host_of_its_address",
        (_PROCESS, '"http.followRedirects=false",', '"http.followRedirects=true",'),
    ),
    guard(
        "I4", "a password is for the host of its address", "git::test_a_password_is_for_the_host_of_its_address",
        (_GIT, "if urlsplit(moved.url).netloc != urlsplit(source.url).netloc:", "if False:"),
    ),
    guard(
        "I3", "twin: a repository may move", "git::test_a_repository_that_moved_on_its_host_is_read",
        (_GIT, "if code != 0 and words.endswith(_REDIRECTS):", "if False:"),
    ),
    guard(
        "I3", "a repository moves to a repository", "git::test_a_page_is_no_repository",
        (_GIT, "if not found.endswith(_REFS):", "if False:"),
    ),
    guard(
        "I3", "a repository moves to web sites alone", "git::test_a_repository_moves_to_web_sites_alone[file:///etc/]",
        ("offline/manifests.py", "if urlsplit(address).scheme not in schemes:", "if False:"),
    ),
    guard(
        "I9", "a repository has so many files", f"{_REPOSITORY}[many-files] {_REPOSITORY}[a-file-that-grows]",
        (_GIT, "if number > limits.files or size > limits.bytes:", "if False:"),
    ),
    guard(
        "I9", "a list of files is not kept", "git::test_a_list_of_files_takes_little_memory",
        (_GIT, "for number, each in enumerate(entries(listed, _TASK), start=1):", 'for number, each in enumerate(listed.read_bytes().split(bytes(1))[:-1], start=1):'),
        (_PROCESS, " or listed > _LISTED_BYTES * limits.files", ""),
    ),
    guard(
        "I3", "git connects where a redirect was checked", "git::test_git_connects_to_the_addresses_that_were_checked[127.0.0.1-]",
        (_GIT, "self._clone(source, credentials, _pinned(source.url))", "self._clone(source, credentials)"),
    ),
    guard(
        "I3", "a redirect leads to no metadata service", "git::test_git_connects_to_the_addresses_that_were_checked[169.254.169.254-metadata-service]",
        (_GIT, "if any(leads_to_metadata(ip_address(each)) for each in found):", "if False:"),
    ),
    guard(
        "I9", "a repository is so deep", f"{_REPOSITORY}[a-deep-folder]",
        (_GIT, 'if name.count(b"/") > limits.depth:', "if False:"),
    ),
    guard(
        "I3", "names of a repository are one line", f"{_REPOSITORY}[a-name-of-two-lines]",
        (_GIT, 'if has_control(name.decode("utf-8", "replace")):', "if False:"),
    ),
    guard(
        "I9", "git has so much time", f"{_STEP}[clone-hangs]",
        (_PROGRAMS, "if time.monotonic() > deadline:", "if False:"), may_hang=True,
    ),
    guard(
        "I9", "git has so much room", f"{_STEP}[clone-fills-the-folder]",
        (_PROCESS, "if size > 2 * limits.bytes or files > 3 * limits.files or listed > _LISTED_BYTES * limits.files:", "if False:"),
    ),
    guard(
        "I9", "git has so much memory", "git::test_an_answer_without_end_takes_so_much_memory",
        (_PROGRAMS, "resource.prlimit(running.pid, resource.RLIMIT_AS, (most, most))", "pass"),
    ),
    guard(
        "I9", "programs of git end with it", f"{_STEP}[clone-leaves-a-writer-behind]",
        (_PROGRAMS, "os.killpg(running.pid, signal.SIGKILL)", "running.kill()"),
    ),
    guard(
        "I4", "what a server says is one line", f"{_STEP}[clone-fails]",
        (_PROGRAMS, '"".join(each if each.isprintable() else " " for each in text).split()', "text.split()"),
    ),
    guard(
        "I9", "a signal removes the folder of a clone", "git::test_a_signal_ends_git_and_removes_its_folder[SIGTERM]",
        (_GIT, "if number is not None and signal.getsignal(number) is signal.SIG_DFL:", "if False:"),
    ),
    guard(
        "I9", "git may not be there", "git::test_a_machine_without_git_says_so",
        (_PROGRAMS, "if program is None:", "if False:"),
    ),
    guard(
        "I9", "the limits of git are written down", "git::test_the_limits_are_those_of_the_guide",
        (_PROCESS, "MAX_CLONE_SECONDS: Final = 300.0", "MAX_CLONE_SECONDS: Final = 3000.0"),
    ),
    guard(
        "I9", "folders are so deep", "file_names::test_a_deep_folder_is_one_error",
        ("offline/folderrules.py", "if len(folder.parts) - len(root.parts) > MAX_FOLDER_DEPTH:", "if False:"),
    ),
    guard(
        "I3", "names of files are one line", "file_names::test_no_name_of_a_file_is_a_line_of_its_own",
        ("offline/folderrules.py", 'return any(each < " " or', 'return any(each == "" or'),
        ("cli/errors.py", "STDERR.write(text)", "STDERR.raw.write(text)"),
    ),
    guard(
        "I3", "a test names files of its own tree", "suite_files::test_a_suite_of_others_stays_in_its_repository",
        ("cli/test/suitefolder.py",),
    ),
    guard(
        "I3", "twin: a suite names files beside its folder", "suite_files::test_a_suite_names_other_folders_of_its_repository",
        ("cli/test/suitefolder.py", "if self.roots and outside(str(found), *self.roots):", "if self.roots:"),
    ),
)  # fmt: skip
