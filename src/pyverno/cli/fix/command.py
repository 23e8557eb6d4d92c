"""`pyverno fix`: rewrite policies and tests to the current schema, and list the changes.

Without `--save` nothing is written. A saved file keeps its comments and quotes; the old one stays beside it as
`NAME.bak`.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import click

from pyverno.cli.args.flags import switch, value
from pyverno.cli.args.groups import group
from pyverno.cli.args.sections import command
from pyverno.cli.errors import Exit
from pyverno.cli.fix.policy import fix_policy
from pyverno.cli.fix.suite import fix_suite
from pyverno.cli.terminal import STDOUT
from pyverno.errors import PyvernoError, UsageError
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.yaml.documents import Document, load_documents
from pyverno.kube.yaml.rewrite import rewrite
from pyverno.kube.yaml.writer import dump_yaml
from pyverno.lazyregex import regex
from pyverno.offline.files import find_yaml, read_file
from pyverno.offline.folderrules import check_depth, check_name
from pyverno.offline.links import FollowedLinks
from pyverno.offline.rewriting import decode_lines, encode_like, replace_file

# trust rows: judged-file

__all__ = ["fix"]

_COMMENT = regex(r"(?:^|\s)#(.*)$")

Fix = Callable[[JSONObject], tuple[JSONObject, list[str]]]


def _print(*lines: str) -> None:
    STDOUT.write("".join(f"{line}\n" for line in lines))


def _fix_files(paths: Iterable[Path], fix_document: Fix, *, what: str, save: bool, force: bool) -> None:
    """Rewrite files one after the other; an unreadable file is an error, the others are still rewritten."""
    failed = 0
    for path in paths:
        _print(f"Processing {what} ({path})...")
        try:
            changed = _fix_file(path, fix_document, force=force)
            if changed is not None and save:
                _print(f"  Saving file ({path})...")
                _save(path, changed)
                _print("    OK")
        except PyvernoError as error:
            failed += 1
            _print(f"  ERROR: {error}")
    _print("Done.")
    if failed:
        raise Exit(1)


def _fix_file(path: Path, fix_document: Fix, *, force: bool) -> str | None:
    """Return the new text of a file, or None when there is nothing to change."""
    content = read_file(path)
    old: list[JSON] = []
    fixed: list[JSON] = []
    changes = 0
    for document in load_documents(content, file=str(path)):
        found, messages = fix_document(_mapping(document))
        changes += len(messages)
        for message in messages:
            _print(f"  WARNING: {message}")
        old.append(document.value)
        fixed.append(found)
    if not fixed or not (changes or force):
        return None
    # --force rewrites the file in pyverno's own form
    changed = None if force else rewrite(_decode(content), old, fixed)
    return changed if changed is not None else "---\n".join(dump_yaml(each, sort_keys=False) for each in fixed)


def _decode(content: bytes) -> str:
    try:
        return decode_lines(content)
    except UnicodeDecodeError:
        return ""  # UTF-16: the file is written anew, in UTF-8


def _mapping(document: Document) -> JSONObject:
    if not isinstance(document.value, dict):
        raise UsageError(f"{document.file}: the document is not an object")
    return document.value


def _save(path: Path, text: str) -> None:
    """Keep the old file as `.bak`, then replace it atomically."""
    backup = path.with_name(f"{path.name}.bak")
    try:
        old, mode = path.read_bytes(), path.stat().st_mode & 0o777
        if not (backup.exists() or backup.is_symlink()):
            _make(backup, old, mode)
    except OSError as error:
        raise UsageError(f"cannot write `{path}`: {(error.strerror or str(error)).lower()}") from error
    replace_file(path, encode_like(text, old))
    lost = _comments(old.decode("utf-8", "replace")) - _comments(text)
    if lost:
        what = "1 comment" if lost.total() == 1 else f"{lost.total()} comments"
        _print(f"  WARNING: {what} could not be kept; the old file is {backup}")


def _comments(text: str) -> Counter[str]:
    """Return possible comments; a `#` inside a text counts too, which matters only if the text is lost."""
    return Counter(found[1].strip() for line in text.splitlines() if (found := _COMMENT.search(line)))


def _make(path: Path, content: bytes, mode: int) -> None:
    """Write a file that does not exist yet; an existing link is an error."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(content)
    path.chmod(mode)


def _existing(folders: Sequence[str]) -> Iterator[Path]:
    for text in folders:
        path = Path(text)
        if not path.exists():
            raise UsageError(f"`{text}` does not exist")
        yield path


def _policies(folders: tuple[str, ...], *, save: bool) -> None:
    paths = [path for place in _existing(folders) for path in ([place] if place.is_file() else find_yaml(place))]
    _fix_files(paths, fix_policy, what="file", save=save, force=False)


def _tests(folders: tuple[str, ...], *, file_name: str, save: bool, force: bool, compress: bool) -> None:
    paths = [path for place in _existing(folders) for path in _suites(place, file_name)]

    def fix_document(document: JSONObject) -> tuple[JSONObject, list[str]]:
        return fix_suite(document, compress=compress)

    _fix_files(paths, fix_document, what="test file", save=save, force=force)


def _suites(place: Path, file_name: str) -> list[Path]:
    if place.is_file():
        return [place]
    found = []
    links = FollowedLinks(place)
    for parent, _, names in os.walk(place):
        check_depth(Path(parent), place)
        if file_name in names:
            check_name(Path(parent))
            links.leave_out(Path(parent) / file_name, None)
            found.append(Path(parent) / file_name)
    return sorted(found)


_SAVE = "Write the files; the old ones are kept as NAME.bak."


def _folders() -> click.Argument:
    return click.Argument(["folders"], nargs=-1, required=True, metavar="DIR...")


policy = command(
    "policy",
    "Rewrite deprecated parts of policies: flat match blocks, condition lists, failure actions of the spec.\n\n"
    "Shows the changes; --save writes them, keeps comments and quotes, and the old files as NAME.bak.",
    _policies,
    {"Options": (switch("--save", help=_SAVE),)},
    _folders(),
    examples=(
        "pyverno fix policy policies/",
        "pyverno fix policy policies/ --save",
    ),
)

test = command(
    "test",
    "Rewrite deprecated parts of test suites.\n\n"
    "Shows the changes; --save writes them, keeps comments and quotes, and the old files as NAME.bak.",
    _tests,
    {
        "Options": (
            value("-f", "--file-name", help="Name of the files with suites.", default="kyverno-test.yaml"),
            switch("--save", help=_SAVE),
            switch("--force", help="With --save: also write files without deprecated parts."),
            switch("--compress", help="Join results that differ only in their resources."),
        )
    },
    _folders(),
    examples=(
        "pyverno fix test tests/",
        "pyverno fix test tests/ --save --compress",
    ),
)

fix = group(
    "fix",
    "Rewrite policies and tests to the current schema.",
    policy,
    test,
    examples=("pyverno fix policy policies/", "pyverno fix test tests/ --save"),
)
