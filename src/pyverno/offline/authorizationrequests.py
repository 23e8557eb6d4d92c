"""Files of authorization requests, for policies in the evaluation modes Envoy and HTTP.

An unreadable file, or one that holds no request of its mode, ends the run.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyverno.engine.cel.authorization import check_request
from pyverno.errors import PyvernoError, UsageError, raise_all
from pyverno.kube.yaml.documents import Document
from pyverno.offline.files import load_files

__all__ = ["load_authorization_requests"]


def load_authorization_requests(paths: Iterable[str], mode: str) -> list[Document]:
    """Read requests, one per document; raises UsageError, with the file, for a document that is no request."""
    found: list[Document] = []
    for path in paths:
        loaded = load_files([path])
        try:
            raise_all(loaded.errors)
            for document in loaded.documents:
                check_request(document.value, mode=mode)
        except PyvernoError as error:
            # Kyverno spells the modes so
            name = "envoy" if mode == "Envoy" else mode
            raise UsageError(f"failed to parse {name} payload from {path}: {error}") from error
        found += loaded.documents
    return found
