"""Kubernetes' library of JSON patch keys."""

from __future__ import annotations

from typing import Final

from pyverno.lang.cel.declarations import Library, function
from pyverno.lang.cel.libraries.costs import by_size
from pyverno.lang.cel.work import reading

__all__ = ["JSON_PATCH"]


@function("jsonpatch.escapeKey", "(string) -> string", cost=by_size(), work=reading(per_step=64))
def escape_key(text: str) -> str:
    """A map key as a JSON pointer wants it.

    CEL: jsonpatch.escapeKey('a/b~c') ⇒ 'a~1b~0c'
    """
    return text.replace("~", "~0").replace("/", "~1")


JSON_PATCH: Final = Library(
    "kubernetes.jsonpatch", (escape_key,), introduced="1.32", doc="Keys of JSON pointers (mutations only)."
)
