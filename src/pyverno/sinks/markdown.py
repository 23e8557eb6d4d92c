"""Markdown (GitHub's and GitLab's dialects): pages of jobs, comments of pull requests, messages of chats."""

from __future__ import annotations

from re import Match

from pyverno.lazyregex import regex
from pyverno.sinks.characters import one_line, visible
from pyverno.sinks.runners import without_commands
from pyverno.sinks.terminal import terminal_text

__all__ = ["markdown_cell", "markdown_code", "markdown_text"]

# `www.`, and a scheme with its colon, are links without brackets
_META = regex(r"[\\`*_\[\]|~$]|&(?=[#\w])|[<>]|(?i:\bwww(?=\.))|:(?=//)|(?i:(?<=mailto):|(?<=xmpp):)|[@#!%](?=\w)")
_TICKS = regex("`+")
_ENTITIES = {"<": "&lt;", ">": "&gt;", "&": "&amp;", ":": "&#58;"}


def markdown_text(text: str) -> str:
    r"""Return a line of text that shows as it is: no link, picture, element, mention, reference or emphasis.

    >>> markdown_text("[a](https://b) <img> @all")
    '\\[a\\](https&#58;//b) &lt;img&gt; <span>@</span>all'
    """
    return without_commands(_META.sub(_escape, one_line(text)))  # guard: markdown shows text as it is


def markdown_cell(text: str) -> str:
    r"""Return a cell of a table; lines of a message are separated by breaks.

    >>> markdown_cell("a|b\nc")
    'a\\|b<br>c'
    """
    return "<br>".join(markdown_text(line) for line in visible(text).split("\n"))


def markdown_code(text: str, language: str = "") -> str:
    r"""Return lines as a block of code, which they cannot end.

    >>> markdown_code("a\n```\nb", "diff")
    '````diff\na\n```\nb\n````'
    """
    longest = max((len(each) for each in _TICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)  # guard: a block of code ends where it should
    return f"{fence}{language}\n{terminal_text(text)}\n{fence}"


def _escape(found: Match[str]) -> str:
    each = found[0]
    if each in _ENTITIES:
        return _ENTITIES[each]
    # readers of mentions and references look at a text and not at its escapes
    if each in "@#!%" or each.lower() == "www":
        return f"<span>{each}</span>"
    return f"\\{each}"
