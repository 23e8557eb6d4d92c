r"""Names of files that are made of names of policies, objects and reports.

A name never leaves its folder: it has no separator, starts with no dot or dash, is none that Windows reserves, has a
length that every file system takes, and two names never become the same file, also where case does not count.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Final

from pyverno.errors import UsageError
from pyverno.lazyregex import regex
from pyverno.sinks.characters import one_line

# trust rows: output-file

__all__ = ["MOST_BYTES", "file_name", "file_names", "inside"]

MOST_BYTES: Final = 200
"""The limit of a name in bytes; file systems take 255, and names get endings."""

_DIGEST: Final = 10
_UNSAFE = regex(r"[^\w.@+=-]|[\u0600-\u0605\u06dd\u070f]")
_RESERVED = regex(r"(?i:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$|clock\$)(?:\..*)?")


def file_name(text: str, ending: str = "") -> str:
    r"""Return a name of a file for a text: the text itself where it is a fit name, else one that a digest makes unique.

    >>> file_name("require-labels", ".yaml")
    'require-labels.yaml'
    >>> file_name("../../etc/passwd", ".yaml").startswith("_._.._etc_passwd-")
    True
    """
    name = _UNSAFE.sub("_", text)  # guard: a name of a file is one part of a path
    if name[:1] in (".", "-"):  # guard: no name of a file is hidden or a flag
        name = "_" + name[1:]
    name = name.rstrip(". ") or "_"
    if _RESERVED.fullmatch(name):  # guard: no name of a file is a device of Windows
        name = f"_{name}"
    if len(name.encode("utf-8", "replace")) > MOST_BYTES:  # guard: a name of a file has a length that fits
        name = name.encode("utf-8", "replace")[: MOST_BYTES - _DIGEST - 1].decode("utf-8", "ignore")
    if name != text:  # guard: two names never become one file
        name = f"{name}-{_digest(text)}"
    return f"{name}{ending}"


def file_names(texts: Iterable[str]) -> list[str]:
    """Return a name of a file for each text, all different, also for equal texts and where case does not count.

    >>> [each[:2] for each in file_names(["a", "b", "A"])]
    ['a', 'b', 'A-']
    """
    found: list[str] = []
    taken: set[str] = set()
    for text in texts:
        name = file_name(text)
        while name.casefold() in taken:  # guard: names that differ in case are two files
            name = f"{name}-{_digest(f'{text}/{len(taken)}')}"
        taken.add(name.casefold())
        found.append(name)
    return found


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST]


def inside(folder: Path, name: str) -> Path:
    """Return the path of a file in a folder; raises UsageError for a path elsewhere, through a link too.

    >>> inside(Path("out"), "a.yaml").as_posix()
    'out/a.yaml'
    """
    path = folder / name
    parts = Path(name).parts
    is_plain = bool(parts) and not Path(name).is_absolute() and ".." not in parts
    if path.is_symlink():  # guard: no file is written through a link
        raise UsageError(f"cannot write to `{one_line(str(path))}`: it is a symbolic link")
    if not is_plain or not _is_below(path.parent, folder):  # guard: a file made of names stays in its folder
        raise UsageError(f"cannot write to `{one_line(str(path))}`: it is not in the folder `{one_line(str(folder))}`")
    return path


def _is_below(path: Path, folder: Path) -> bool:
    """Return whether a path is a folder or in it, with all links followed."""
    root, found = os.path.realpath(folder), os.path.realpath(path)
    return found == root or found.startswith(root.rstrip(os.sep) + os.sep)
