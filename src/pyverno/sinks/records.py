"""Records for machines, which people read later: JSON, labels of metrics, events of Kubernetes."""

from __future__ import annotations

from re import Match

from pyverno.lazyregex import regex
from pyverno.sinks.characters import SPECIAL, visible
from pyverno.sinks.runners import without_commands

__all__ = ["event_text", "json_text", "label_value"]

# what an encoder of JSON leaves raw; controls below a blank can only be the layout
_RAW = regex(f"[{SPECIAL}\u200c\u200d]")


def json_text(text: str) -> str:
    r"""Return a document in JSON, of any encoder, with escapes of JSON for what a terminal or a runner would obey.

    The value stays the same.

    >>> json_text('{"a":"\u202e##vso[x]"}')
    '{"a":"\\u202e#\\u0023vso[x]"}'
    """
    if not text.isascii() or "\x7f" in text:
        text = _RAW.sub(_json_escape, text)  # guard: JSON has no raw control character
    return without_commands(text) if "##" in text else text


def _json_escape(found: Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def label_value(text: str) -> str:
    r"""Return the value of a label in the exposition format of Prometheus, without its quotes.

    >>> label_value('a"\n\x1b')
    'a\\"\\n\\\\x1b'
    """
    shown = visible(text).replace("\\", "\\\\").replace('"', '\\"')
    return shown.replace("\n", "\\n")  # guard: a label of a metric is one line


def event_text(text: str, most: int) -> str:
    r"""Return the note of an event of Kubernetes, which `kubectl` shows, of at most so many bytes.

    >>> event_text("denied\x1b", 8)
    'denie...'
    """
    shown = without_commands(visible(text))  # guard: a note of an event has no control character
    note = shown.encode()
    return shown if len(note) <= most else note[: most - 3].decode(errors="ignore") + "..."
