"""Read YAML and JSON streams into documents: JSON values that know the source location of each node.

Values follow sigs.k8s.io/yaml (see `scalars`); positions are computed lazily from a document's text, so that loading
costs nothing for them.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, Literal

from pyverno.errors import DocumentError, Location
from pyverno.kube.json import JSON, decode, dump
from pyverno.kube.yaml.blocks import BlockReader
from pyverno.kube.yaml.fieldpath import Path
from pyverno.lazyregex import regex
from pyverno.value import dataclass, field, replace

if TYPE_CHECKING:
    from pyverno.kube.yaml.events import Position

__all__ = ["MAX_BYTES", "Document", "expand_lists", "find_value", "load_documents"]

MAX_BYTES: Final = 512 * 1024 * 1024
"""Size of the largest source that is read, in bytes."""

DuplicateKeys = Literal["error", "last"]

# A line that starts with `---` or `...` and a blank ends a document wherever it is (YAML 1.1, 9.1).
_BOUNDARY: Final = regex(r"^(?:---|\.\.\.)(?=[ \t\r\n\x85\u2028\u2029]|\Z)", re.MULTILINE)
_MARKERS: Final = ("---", "...", "%")
_CONTENT: Final = regex(r"^[ \t]*[^\s#]", re.MULTILINE)
_HELM: Final = regex(r"\{\{-?\s*(?:\.|\$|include\b|template\b|if\b|range\b|with\b|end\b|define\b|toYaml\b)|-\}\}")
_UNQUOTED: Final = regex(r"[:-]\s+\{\{")
_FORBIDDEN: Final = regex(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff]")
_ASCII_ALLOWED: Final = bytes([9, 10, 13, *range(0x20, 0x7F)])


class _Source:
    """The text of one document inside its stream, and its positions once computed.

    `holds_null` is False when the text shows that no value is null.
    """

    __slots__ = ("_lines", "_mentions", "_positions", "_starts", "end", "holds_null", "line", "start", "text")

    def __init__(self, text: str, start: int, end: int, line: int, *, holds_null: bool = True) -> None:
        self.holds_null = holds_null
        self.text = text
        self.start = start
        self.end = end
        self.line = line
        self._positions: Position | None = None
        self._lines: Sequence[str] = ()
        self._starts: Sequence[int] = ()
        self._mentions: dict[str, bool] = {}

    def mentions(self, word: str) -> bool:
        """Whether the text contains a word; looked up once, however many items a list has."""
        if word not in self._mentions:
            self._mentions[word] = self.text.find(word, self.start, self.end) >= 0
        return self._mentions[word]

    def lines(self) -> Sequence[str]:
        """The lines of the text, split once."""
        self._lines = self._lines or self.text[self.start : self.end].split("\n")
        return self._lines

    def starts(self) -> Sequence[int]:
        """The index in the stream's text at which each line starts."""
        if not self._starts:
            lengths = (len(line) + 1 for line in self.lines()[:-1])
            self._starts = (*accumulate(lengths, initial=self.start),)
        return self._starts

    def positions(self) -> Position:
        """Root of the position tree; the first line when the text is not YAML (JSON that only JSON reads)."""
        if self._positions is None:
            from pyverno.kube.yaml.events import Fault, Position, build_positions

            try:
                root = build_positions(self.text[self.start : self.end])
            except Fault:
                root = None
            self._positions = root or Position(1, 1)
        return self._positions

    def place(self, path: Path, *, key: bool) -> tuple[int, int]:
        """Line in the stream and column of the node at `path` or of its key; of the nearest ancestor there is."""
        node = self.positions()
        for step in path:
            child = node.children.get(step)
            if child is None:
                break
            node = child
        line, column = (node.key_line, node.key_column) if key else (node.line, node.column)
        return self.line + line - 1, column

    def index(self, path: Path, value: JSON, offset: int | None, *, key: bool = False) -> int:
        """Index in the stream's text of a node, of its key, or of the character at `offset` of a text."""
        line, column = self.place(path, key=key)
        start = self.starts()[line - self.line] + column - 1
        if key or offset is None or not isinstance(value, str):
            return start
        from pyverno.kube.yaml.characters import find_character

        found = find_character(self.text[self.start : self.end], start - self.start, value, offset)
        return start if found is None else self.start + found

    def character(self, path: Path, value: JSON, offset: int) -> tuple[int, int]:
        """Line in the stream and column of a character of a text, counted from 1."""
        at = self.index(path, value, offset)
        row = bisect_right(self.starts(), at) - 1
        return self.line + row, at - self.starts()[row] + 1


@dataclass(frozen=True, slots=True)
class Document:
    """One document of a stream: its value, the file's name, its index among the file's documents and its first line.

    >>> document = load_documents("kind: Pod\\nspec:\\n  hostPID: yes\\n", file="pod.yaml")[0]
    >>> document.value
    {'kind': 'Pod', 'spec': {'hostPID': True}}
    >>> str(document.location(("spec", "hostPID"))), str(document.location(("spec", "hostPID"), key=True))
    ('pod.yaml:3:12', 'pod.yaml:3:3')
    """

    value: JSON
    file: str = "-"
    index: int = 0
    line: int = 1
    _source: _Source | None = field(default=None, compare=False, repr=False)
    _prefix: Path = field(default=(), compare=False, repr=False)

    @property
    def may_hold_null(self) -> bool:
        """Return whether some value may be null; False is certain, and costs nothing to know."""
        return self._source is None or self._source.holds_null

    def location(self, path: Path = (), *, key: bool = False) -> Location:
        """The position of the node at `path`, or of its key with `key=True`.

        A path that does not exist gives its nearest ancestor that does, so every finding has a place. The text is read
        for it at the first use of line or column.
        """
        source = self._source
        if not self.line:
            return Location(self.file)
        if source is None:
            return Location(self.file, self.line, 1)
        return Location.later(self.file, partial(source.place, self._prefix + path, key=key))

    def character(self, path: Path, offset: int) -> Location:
        """Return the location of a character of the text at `path`, also in blocks, folded and quoted texts.

        >>> document = load_documents("a:\\n  b: |\\n    one\\n    two\\n", file="x.yaml")[0]
        >>> str(document.character(("a", "b"), 5))
        'x.yaml:4:6'
        """
        source = self._source
        if source is None or not self.line:
            return self.location(path)
        find = partial(source.character, self._prefix + path, find_value(self.value, path), offset)
        return Location.later(self.file, find)

    @property
    def text(self) -> str | None:
        """The text of the whole stream that the document was read from; None when it was not read from a text."""
        return None if self._source is None else self._source.text

    def rendered_from(self, file: str) -> Document:
        """Return the document as one that a program made of a file: it has the file's name, and no lines.

        >>> str(Document({}, "-", 0, 7).rendered_from("chart/templates/pod.yaml").location())
        'chart/templates/pod.yaml'
        """
        return replace(self, file=file, line=0)

    def mentions(self, word: str) -> bool:
        """Return whether the document's own text contains a word; False for a document without a text."""
        return self._source is not None and self._source.mentions(word)

    def shares_text(self, other: Document | None) -> bool:
        """Return whether both were read from one document, as the items of a list are."""
        return other is not None and self._source is not None and self._source is other._source

    @property
    def own_lines(self) -> tuple[int, Sequence[str]]:
        """The number of the first line in the stream and the lines of the document; a list's item has all of them."""
        return (1, ()) if self._source is None else (self._source.line, self._source.lines())

    def line_text(self, number: int) -> str | None:
        """Return a line of the stream, None where it is not one of the document.

        >>> load_documents("a: 1\\n---\\nb: 2\\n")[1].line_text(3)
        'b: 2'
        """
        first, lines = self.own_lines
        return lines[number - first] if 0 <= number - first < len(lines) else None

    def field_lines(self) -> Mapping[int, Path]:
        """Return the path of the outermost field or list element that begins in each line of the stream.

        Lines in which none begins, such as those within a text, and those outside an item of a list, are not there.

        >>> document = load_documents("spec:\\n  containers:\\n  - name: a\\n    image: b\\n")[0]
        >>> document.field_lines()[3], document.field_lines()[4], document.field_lines().get(9)
        (('spec', 'containers', 0), ('spec', 'containers', 0, 'image'), None)
        """
        if self._source is None:
            return {}
        node: Position | None = self._source.positions()
        for step in self._prefix:
            node = None if node is None else node.children.get(step)
        if node is None:
            return {}
        before = self._source.line - 1
        found: dict[int, Path] = {before + node.line: ()} if self._prefix else {}
        level: list[tuple[Path, Position]] = [((), node)]
        while level:
            below: list[tuple[Path, Position]] = []
            for path, node in level:
                for step, child in node.children.items():
                    line = child.line if isinstance(step, int) else child.key_line
                    found.setdefault(before + line, (*path, step))
                    if child.children:
                        below.append(((*path, step), child))
            level = below
        return found

    def text_index(self, path: Path, offset: int | None = None, *, key: bool = False) -> int:
        """Return the index in `text` of the node at `path`, of its key, or of a character of its value."""
        if self._source is None:
            return 0
        return self._source.index(self._prefix + path, find_value(self.value, path), offset, key=key)


def find_value(value: JSON, path: Path) -> JSON:
    """Return the value at a path, None where there is none.

    >>> find_value({"a": ["b"]}, ("a", 0))
    'b'
    """
    for step in path:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return None
    return value


def load_documents(
    data: bytes | str, *, file: str = "-", duplicate_keys: DuplicateKeys = "error"
) -> tuple[Document, ...]:
    """All documents of a YAML stream or a JSON text, in order; empty ones are left out.

    `duplicate_keys="error"` refuses a mapping that names a key twice, `"last"` lets the last one win. Raises
    DocumentError with file, line and column for everything that is not YAML, has no JSON value (NaN), or exceeds a
    limit (size, depth 10,000, 500 in brackets that are not JSON, alias expansion).

    >>> [document.value for document in load_documents("a: 1\\n---\\n# nothing\\n---\\nb: on\\n")]
    [{'a': 1}, {'b': True}]
    """
    text = _decode(data, file)
    if text and text[-1] != "\n":  # Kubernetes: every line that is read ends with one, the last line of a file as well
        text += "\n"
    unique_keys = duplicate_keys == "error"
    opening = text[:256].lstrip()[:1]
    if opening in ("{", "["):
        document = _load_json(text, file, unique_keys)
        if document is not None:
            return (document,)
    _check_characters(text, file)
    documents: list[Document] = []
    blocks = BlockReader()
    for source in _split(text):
        is_read, value = blocks.read(text[source.start : source.end])
        if is_read:
            source.holds_null = blocks.may_hold_null
        else:
            value = _read(source, file, unique_keys)
        if value is not None:
            documents.append(Document(value, file, len(documents), _first_line(source), source))
    return tuple(documents)


def _read(source: _Source, file: str, unique_keys: bool) -> JSON:
    """Read a text with libyaml, which most documents do not need."""
    from pyverno.kube.yaml.events import Fault, build_value

    try:
        return build_value(source.text[source.start : source.end], unique_keys=unique_keys)
    except Fault as fault:
        location = Location(file, source.line + fault.line - 1, fault.column)
        raise DocumentError(fault.reason + _hint(source, fault.line), location=location) from None


def _hint(source: _Source, line: int) -> str:
    """Return what a reader probably forgot, judging by the line that is no YAML."""
    lines = source.text[source.start : source.end].split("\n", line)
    written = lines[line - 1] if 0 < line <= len(lines) else ""
    if _HELM.search(written) is not None:
        return ": this is a template of Helm, render it first with `helm template`"
    if _UNQUOTED.search(written) is not None:
        return ": text that begins with `{{` needs quotes"
    return ""


def expand_lists(documents: Iterable[Document]) -> tuple[Document, ...]:
    """Documents with every Kubernetes list (`List`, `PodList`, ...) replaced by its items, which keep their positions.

    An item's `line` and `index` are those of the list's document; its own place is `location()`.

    >>> listed = load_documents("apiVersion: v1\\nkind: List\\nitems:\\n- kind: Pod\\n- kind: Job\\n")
    >>> [(item.value["kind"], item.location().line) for item in expand_lists(listed)]
    [('Pod', 4), ('Job', 5)]
    """
    expanded: list[Document] = []
    waiting = [*documents][::-1]
    while waiting:
        document = waiting.pop()
        if _is_list(document.value):
            waiting.extend(_item(document, index) for index in reversed(range(len(document.value["items"]))))
        else:
            expanded.append(document)
    return tuple(expanded)


def _item(document: Document, index: int) -> Document:
    value = document.value["items"][index]
    prefix = (*document._prefix, "items", index)
    return Document(value, document.file, document.index, document.line, document._source, prefix)


def _is_list(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    kind = value.get("kind")
    return isinstance(kind, str) and kind.endswith("List") and isinstance(value.get("items"), list)


# ------------------------------------------------------------------------------------------------------------ text


def _decode(data: bytes | str, file: str) -> str:
    if len(data) > MAX_BYTES:
        raise DocumentError(f"the source is larger than {MAX_BYTES} bytes", location=Location(file))
    if isinstance(data, str):
        return data.removeprefix("\ufeff")
    if data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        encoding = "utf-16"
    else:
        encoding, data = "utf-8", data.removeprefix(BOM_UTF8)
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        before = data[: error.start].decode(encoding, "replace")
        location = Location(file, before.count("\n") + 1, len(before) - before.rfind("\n"))
        raise DocumentError(f"the source is not valid {encoding.upper()}", location=location) from None


def _check_characters(text: str, file: str) -> None:
    """Refuses control characters and lone surrogates before libyaml sees them, with their place."""
    if text.isascii() and not text.encode("ascii").translate(None, _ASCII_ALLOWED):
        return
    match = _FORBIDDEN.search(text)
    if match is None:
        return
    start = match.start()
    location = Location(file, text.count("\n", 0, start) + 1, start - text.rfind("\n", 0, start))
    raise DocumentError(f"character U+{ord(match[0]):04X} is not allowed in YAML", location=location)


def _split(text: str) -> Iterator[_Source]:
    """The documents' texts; a stream with directives stays in one piece up to their document."""
    if "\n---" not in text and "\n..." not in text and not text.startswith(_MARKERS):
        # one document, as most files are
        if text:
            yield _Source(text, 0, len(text), 1)
        return
    start, line = 0, 1
    directive = text.startswith("%")
    for match in _BOUNDARY.finditer(text):
        at = match.start()
        if directive:
            directive = False  # the marker that follows directives belongs to their document
            continue
        if at > start:
            yield _Source(text, start, at, line)
            line += text.count("\n", start, at)
        start = at if match[0] == "---" else match.end()
        directive = match[0] == "..." and text[match.end() :].lstrip().startswith("%")
    if start < len(text):
        yield _Source(text, start, len(text), line)


def _first_line(source: _Source) -> int:
    """Line of a document's first content, past its marker and leading comments."""
    text = source.text
    start = source.start + 3 if text.startswith("---", source.start) else source.start
    match = _CONTENT.search(text, start, source.end)
    at = match.end() if match else start
    return source.line + text.count("\n", source.start, at)


# ------------------------------------------------------------------------------------------------------------ JSON


def _load_json(text: str, file: str, unique_keys: bool) -> Document | None:
    """The one JSON text, or None when it is not JSON (then it may still be YAML in flow style)."""
    try:
        value = decode(text)
    except DocumentError:
        return None
    if unique_keys and not _keys_are_unique(text, value):
        return None
    source = _Source(text, 0, len(text), 1, holds_null="null" in text)
    return Document(value, file, 0, 1 + _leading_lines(text), source)


def _leading_lines(text: str) -> int:
    return text.count("\n", 0, len(text) - len(text.lstrip()))


def _keys_are_unique(text: str, value: JSON) -> bool:
    """Whether decoding lost no key, found by counting keys in the text and in the value written back.

    A quote inside a string is always escaped, so a quote followed by a colon ends a key, or is inside a string and
    is counted on both sides. Unusual spellings (blank before the colon, quotes escaped by number) are read again.
    """
    try:
        if "\\u0022" not in text and text.count('":') == dump(value).count(b'":'):
            return True
        import json  # unusual spellings only

        json.loads(text, object_pairs_hook=_refuse_duplicates)
    except (RecursionError, ValueError):
        return False
    return True


def _refuse_duplicates(pairs: list[tuple[str, JSON]]) -> None:
    if len({key for key, _ in pairs}) < len(pairs):
        raise ValueError("duplicate key")
