"""An image field of an object: its text, and the object with another one."""

from __future__ import annotations

from collections.abc import Sequence

from pyverno.errors import EvaluationError
from pyverno.kube.json import JSON, JSONObject

__all__ = ["pinned", "text_at"]


def text_at(document: JSON, steps: Sequence[str]) -> str | None:
    """Return the text that steps lead to, None for a missing one; a JSON pointer is not exact, as keys may hold `/`.

    >>> text_at({"spec": {"containers": [{"image": "nginx"}]}}, ("spec", "containers", "0", "image"))
    'nginx'
    """
    for step in steps:
        document = _child(document, step)
    return document if isinstance(document, str) else None


def pinned(resource: JSONObject, steps: Sequence[str], text: str) -> JSONObject:
    """Return the object with another text where steps lead; raises EvaluationError when there is none to replace."""
    if text_at(resource, steps) is None:
        raise EvaluationError(f"there is no image at `/{'/'.join(steps)}`")
    changed: JSONObject = _with(resource, steps, text)
    return changed


def _child(value: JSON, step: str) -> JSON:
    if isinstance(value, dict):
        return value.get(step)
    if isinstance(value, list) and step.isdecimal() and int(step) < len(value):
        return value[int(step)]
    return None


def _with(value: JSON, steps: Sequence[str], text: str) -> JSON:
    if not steps:
        return text
    step, rest = steps[0], steps[1:]
    if isinstance(value, list):
        index = int(step)
        return [*value[:index], _with(value[index], rest, text), *value[index + 1 :]]
    return {**value, step: _with(value[step], rest, text)}
