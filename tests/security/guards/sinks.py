"""The guards of I22: names are data in every sink."""

from __future__ import annotations

from typing import Final

from tests.security.guards.guard import Guard, guard

__all__ = ["SINKS"]

_NAMES: Final = "tests/security/strangers/test_names.py::"
_OUTPUT: Final = f"{_NAMES}test_names_are_data_in_every_output"
_CONTROLS, _COMMANDS = (
    "sinks::test_no_sink_lets_a_control_character_through",
    "sinks::test_no_sink_lets_a_command_through",
)

SINKS: Final[tuple[Guard, ...]] = (
    guard(
        *("I22", "control characters are visible escapes", f"{_CONTROLS} {_OUTPUT}[lint]"),
        ("sinks/characters.py", "text"),
    ),
    guard(
        *("I22", "a name is one line", f"{_CONTROLS} sinks::test_an_event_of_the_log_is_one_line"),
        ("sinks/characters.py", "text"),
    ),
    guard(
        *("I22", "text of people stays", "sinks::test_text_of_people_stays"),
        ("sinks/characters.py", '_JOINERS: Final = "(?<![^\\x00-\\x7f])[', '_JOINERS: Final = "['),
    ),
    guard(
        *("I22", "a message of several lines is indented", "sinks::test_a_message_of_several_lines_stays_readable"),
        ("sinks/characters.py", '("\\n" + indent).join', '"\\n".join'),
    ),
    guard(
        *("I22", "a terminal gets visible escapes", f"{_CONTROLS} sinks::test_a_terminal_gets_our_own_colours_only"),
        ("sinks/terminal.py", "text"),
    ),
    guard(
        *("I22", "output goes through its sink", f"{_OUTPUT}[lint] {_NAMES}test_a_process_prints_names_as_data[apply]"),
        ("cli/terminal.py", "text"),
    ),
    guard(
        *("I22", "no line starts a workflow command", f"{_COMMANDS} {_OUTPUT}[apply]"),
        ("sinks/runners.py", "text"),
    ),
    guard(*("I22", "no text holds a logging command", f"{_COMMANDS} {_OUTPUT}[lint]"), ("sinks/runners.py", "text")),
    guard(*("I22", "a finding is one command of GitHub", f"{_CONTROLS} {_OUTPUT}[lint]"), ("sinks/runners.py", "text")),
    guard(*("I22", "a finding is one line of Azure", _CONTROLS), ("sinks/runners.py", "text")),
    guard(
        *("I22", "a finding is one message of TeamCity", f"{_CONTROLS} {_OUTPUT}[lint]"), ("sinks/runners.py", "text")
    ),
    guard(*("I22", "a finding is one test point", _CONTROLS), ("sinks/runners.py", "text")),
    guard(*("I22", "markdown shows text as it is", f"{_OUTPUT}[report]"), ("sinks/markdown.py", "text")),
    guard(
        *("I22", "a block of code ends where it should", "sinks::test_a_block_of_code_ends_where_it_should"),
        ("sinks/markdown.py", '"```"'),
    ),
    guard(*("I22", "a page in HTML has no element of others", f"{_OUTPUT}[report]"), ("sinks/markup.py", "text")),
    guard(*("I22", "a message of SARIF has no link", f"{_OUTPUT}[report]"), ("sinks/markup.py", "shown")),
    guard(*("I22", "XML has no element of others", f"{_OUTPUT}[lint]"), ("sinks/markup.py", "text")),
    guard(*("I22", "an attribute of XML stays in its quotes", f"{_OUTPUT}[report]"), ("sinks/markup.py", "text")),
    guard(*("I22", "no cell is a formula", f"{_OUTPUT}[report]"), ("sinks/cells.py", "shown")),
    guard(
        *("I22", "JSON has no raw control character", "sinks::test_documents_keep_their_data"),
        ("sinks/records.py", "text"),
    ),
    guard(
        *("I22", "YAML has no raw control character", "sinks::test_documents_keep_their_data"), ("kube/yaml/writer.py",)
    ),
    guard(
        *("I22", "no line of YAML is a workflow command", "sinks::test_documents_keep_their_data"),
        ("kube/yaml/writer.py",),
    ),
    guard(*("I22", "a label of a metric is one line", _CONTROLS), ("sinks/records.py", "shown")),
    guard(
        *("I22", "a note of an event has no control character", f"{_CONTROLS} {_COMMANDS}"),
        ("sinks/records.py", "text"),
    ),
    guard(
        *("I22", "an event of the log is one line", "sinks::test_an_event_of_the_log_is_one_line"),
        ("telemetry/logs.py", "text"),
    ),
    guard(
        *("I22", "a name of a file is one part of a path", "sinks::test_no_name_of_a_file_leaves_its_folder"),
        ("sinks/filenames.py", "text"),
    ),
    guard(
        *("I22", "no name of a file is a device of Windows", "sinks::test_no_name_of_a_file_leaves_its_folder"),
        ("sinks/filenames.py",),
    ),
    guard(
        *("I22", "a name of a file has a length that fits", "sinks::test_no_name_of_a_file_leaves_its_folder"),
        ("sinks/filenames.py",),
    ),
    guard(
        *("I22", "no name of a file is hidden or a flag", "sinks::test_no_name_of_a_file_leaves_its_folder"),
        ("sinks/filenames.py",),
    ),
    guard(
        *("I22", "two names never become one file", "sinks::test_names_that_are_alike_are_different_files"),
        ("sinks/filenames.py",),
    ),
    guard(
        *("I22", "names that differ in case are two files", "sinks::test_names_that_are_alike_are_different_files"),
        ("sinks/filenames.py",),
    ),
    guard(
        *("I22", "no file is written through a link", "sinks::test_no_file_is_written_through_a_link"),
        ("sinks/filenames.py",),
    ),
    guard(
        *("I22", "a file made of names stays in its folder", "sinks::test_no_file_is_written_through_a_link"),
        ("sinks/filenames.py",),
    ),
    guard(
        *("I22", "all output leaves through a terminal", "sinks::test_all_output_leaves_through_a_terminal"),
        ("cli/version.py", "STDOUT.write(text)", "print(text)"),
    ),
    guard(
        *(
            "I22",
            "a writer of files says where names are from",
            "sinks::test_who_writes_a_file_says_where_its_name_is_from",
        ),
        ("cli/version.py", "STDOUT.write(text)", "Path(text).write_text(text)"),
    ),
    guard(
        *("I22", "text is encoded in one place", "sinks::test_no_other_module_encodes_for_a_sink"),
        ("report/html.py", "from pyverno.sinks.markup import html_text", "from html import escape as html_text"),
    ),
    guard(
        *("I22", "every command and format is tried", f"{_NAMES}test_every_command_and_every_format_is_tried"),
        ("cli/root.py", '    "version": Row', '    "news": Row(_version, ""),\n    "version": Row'),
    ),
    guard(
        *("I22", "names that are no text have an address", "sinks::test_a_file_name_that_is_no_text_ends_no_output"),
        ("report/formats/sarif.py", 'quote(name, safe="/")'),
    ),
)
