r"""Logs of CI systems, which take some lines for commands, and the values within commands of our own.

GitHub Actions reads `::name::` at the start of a line, behind any blanks, and `##[name]` anywhere in it; Azure
Pipelines reads `##vso[`, TeamCity `##teamcity[`, anywhere. A text of somebody else never holds one that a runner would
obey.
"""

from __future__ import annotations

import re
from re import Match
from typing import Final

from pyverno.lazyregex import regex
from pyverno.sinks.characters import SPECIAL, one_line, visible

__all__ = [
    "COMMAND_FORMS",
    "azure_data",
    "azure_property",
    "github_data",
    "github_property",
    "has_commands",
    "tap_text",
    "teamcity_value",
    "without_commands",
]

COMMAND_FORMS: Final = frozenset({"github", "azure", "teamcity"})
"""The formats whose lines are commands."""

_START: Final = r"^([^\S\n]*)::(?=.*::)"
_ANYWHERE: Final = r"#(#(?:\[|vso\[|teamcity\[))"
_LINE_COMMAND = regex(_START, re.MULTILINE)
_COMMAND = regex(_ANYWHERE, re.IGNORECASE)
_TEAMCITY: Final = {"|": "||", "'": "|'", "\n": "|n", "\r": "|r", "[": "|[", "]": "|]"}
_TEAMCITY_SPECIAL = regex(rf"[|'\n\r\[\]{SPECIAL}]|[^\x20-\x7e]")


def without_commands(text: str) -> str:
    r"""Return a text that no runner obeys: a backslash before `::`, an escape in place of the second `#`.

    >>> without_commands("a\n ::error::b ##vso[task.complete]")
    'a\n \\::error::b #\\u0023vso[task.complete]'
    """
    if "::" in text:
        text = _LINE_COMMAND.sub(r"\1\\::", text)  # guard: no line starts a workflow command
    if "##" in text:
        text = _COMMAND.sub(_broken, text)  # guard: no text holds a logging command
    return text


def has_commands(text: str) -> bool:
    """Return whether a runner would take a line of a text for a command.

    >>> has_commands("a ##[error]"), has_commands("a ::error::b")
    (True, False)
    """
    return ("::" in text and bool(_LINE_COMMAND.search(text))) or ("##" in text and bool(_COMMAND.search(text)))


def _broken(found: Match[str]) -> str:
    return f"#\\u0023{found[1][1:]}"


def github_data(text: str) -> str:
    r"""Return the text of a workflow command of GitHub Actions.

    >>> github_data("50%\n##[error]a")
    '50%25%0A#\\u0023[error]a'
    """
    text = _COMMAND.sub(_broken, visible(text)) if "##" in text else visible(text)
    lines = text.replace("%", "%25").split("\n")
    return "%0A".join(lines)  # guard: a finding is one command of GitHub


def github_property(text: str) -> str:
    """Return the value of a property of a workflow command.

    >>> github_property("a,line=1::b")
    'a%2Cline=1%3A%3Ab'
    """
    return github_data(text).replace(":", "%3A").replace(",", "%2C")


def azure_data(text: str) -> str:
    r"""Return the text of a logging command of Azure Pipelines.

    >>> azure_data("50%\na")
    '50%AZP25%0Aa'
    """
    text = _COMMAND.sub(_broken, visible(text)) if "##" in text else visible(text)
    lines = text.replace("%", "%AZP25").split("\n")
    return "%0A".join(lines)  # guard: a finding is one line of Azure


def azure_property(text: str) -> str:
    """Return the value of a property of a logging command.

    >>> azure_property("a;code=b]c")
    'a%3Bcode=b%5Dc'
    """
    return azure_data(text).replace("]", "%5D").replace(";", "%3B")


def teamcity_value(text: str) -> str:
    """Return the value of an attribute of a service message of TeamCity.

    >>> teamcity_value("it's [no]")
    "it|'s |[no|]"
    """
    text = visible(text)
    return _TEAMCITY_SPECIAL.sub(_teamcity_escape, text)  # guard: a finding is one message of TeamCity


def _teamcity_escape(found: Match[str]) -> str:
    character = found[0]
    if character in _TEAMCITY:
        return _TEAMCITY[character]
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"|0x{units[at : at + 4]}" for at in range(0, len(units), 4))


def tap_text(text: str) -> str:
    r"""Return the description or the directive of a test point in the Test Anything Protocol.

    >>> tap_text("a # SKIP\nok 2")
    'a \\# SKIP ok 2'
    """
    line = one_line(" ".join(text.split("\n")))  # guard: a finding is one test point
    return line.replace("\\", "\\\\").replace("#", "\\#")
