"""HTML and XML: text and values of attributes."""

from __future__ import annotations

import html
import re
from re import Match
from typing import Final

from pyverno.lazyregex import regex
from pyverno.sinks.characters import visible
from pyverno.sinks.runners import has_commands

__all__ = ["html_text", "sarif_text", "xml_attribute", "xml_text"]

_XML_SPECIAL: Final = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_XML_IN_TEXT = regex("[&<>]")
_XML_IN_ATTRIBUTE = regex('[&<>"\n\t]')
# a character reference is the same text to a reader of XML
_LINE_COMMAND = regex(r"^([^\S\n]*):(?=:)", re.MULTILINE)
_COMMAND = regex(r"#(?=#(?:\[|vso\[|teamcity\[))", re.IGNORECASE)


def html_text(text: str) -> str:
    r"""Return text, or the value of an attribute in quotes, for a page in HTML.

    >>> html_text("<img src='x'>\x1b")
    '&lt;img src=&#x27;x&#x27;&gt;\\x1b'
    """
    escaped = html.escape(visible(text))  # guard: a page in HTML has no element of others
    return _no_commands(escaped) if has_commands(text) else escaped


def sarif_text(text: str) -> str:
    r"""Return a message of SARIF, in which brackets before parentheses would be a link.

    >>> sarif_text("[a](https://b)"), sarif_text("containers[0]")
    ('\\[a\\](https://b)', 'containers[0]')
    """
    shown = visible(text)
    if "](" not in shown:
        return shown
    return shown.replace("[", "\\[").replace("]", "\\]")  # guard: a message of SARIF has no link


def xml_text(text: str) -> str:
    r"""Return text of an element in XML; characters that XML cannot hold are visible escapes.

    >>> xml_text("a < b\x00\n::error::c")
    'a &lt; b\\x00\n&#58;:error::c'
    """
    escaped = _XML_IN_TEXT.sub(_reference, visible(text))  # guard: XML has no element of others
    return _no_commands(escaped) if has_commands(text) else escaped


def xml_attribute(text: str) -> str:
    r"""Return the value of an attribute in XML with its quotes.

    >>> xml_attribute('a"\nb')
    '"a&quot;&#10;b"'
    """
    escaped = _XML_IN_ATTRIBUTE.sub(_reference, visible(text))  # guard: an attribute of XML stays in its quotes
    return f'"{_no_commands(escaped)}"' if has_commands(text) else f'"{escaped}"'


def _reference(found: Match[str]) -> str:
    return _XML_SPECIAL.get(found[0]) or ("&quot;" if found[0] == '"' else f"&#{ord(found[0])};")


def _no_commands(text: str) -> str:
    return _COMMAND.sub("&#35;", _LINE_COMMAND.sub(r"\1&#58;", text))
