"""The image field that a rule about images failed for.

Nothing is verified again: the message of the result names the image.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyverno.engine.blame.paths import Path, common, parse_slashed
from pyverno.images import ImageInfo
from pyverno.kube.json import JSON

__all__ = ["blamed_image", "blamed_text"]


def blamed_image(images: Sequence[ImageInfo], message: str, document: JSON) -> Path | None:
    """Return the path of the image that a message names; what all images have in common where it names none."""
    names = {name: image for image in images for name in (image.reference_with_tag, image.reference)}
    named = names.get(_longest_name(tuple(names), message))
    if named is not None:
        return parse_slashed(named.pointer, document)
    return common([parse_slashed(image.pointer, document) for image in images]) if images else None


def blamed_text(texts: Sequence[str], message: str, document: JSON) -> Path | None:
    """Return the path of the text of an image that a message names; what all of them have in common without one."""
    named = _longest_name(texts, message)
    paths = [path for path, text in _texts(document) if (text == named if named else text in texts)]
    if not paths:
        return None
    return paths[0] if named else common(paths)


def _longest_name(names: Sequence[str], message: str) -> str:
    """Return the longest of the names in a message: one may be the beginning of another."""
    return max((name for name in names if name and name in message), key=len, default="")


def _texts(document: JSON) -> Iterator[tuple[Path, str]]:
    """Yield the texts of a document with their paths, in its order; those of its metadata are left out."""
    pending: list[tuple[Path, JSON]] = [((), document)]
    while pending:
        path, current = pending.pop()
        if isinstance(current, str):
            yield path, current
        elif isinstance(current, dict):
            keys = [key for key in reversed(current) if path or key != "metadata"]
            pending.extend(((*path, key), current[key]) for key in keys)
        elif isinstance(current, list):
            pending.extend(((*path, index), current[index]) for index in reversed(range(len(current))))
