"""Fields of an attestor in a policy; a field that no check reads is an error, never ignored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyverno.errors import VerificationError
from pyverno.kube.json import JSON, JSONObject

__all__ = ["AttestorFields", "read_items"]


def read_items(value: JSON, path: str) -> Sequence[JSON]:
    """Return a list that may be missing; raises VerificationError for anything else."""
    if value is None:
        return ()
    if not isinstance(value, list):
        raise VerificationError(f"{path} must be a list")
    return value


class AttestorFields:
    """The fields of one object at `path`; empty and null values count as missing.

    >>> fields = AttestorFields({"url": "https://log.example.com", "other": 1}, ".rekor")
    >>> fields.text("url")
    'https://log.example.com'
    >>> fields.finish()
    Traceback (most recent call last):
    pyverno.errors.VerificationError: .rekor.other is not supported
    """

    def __init__(self, body: JSON, path: str) -> None:
        """Take the object; raises VerificationError for any other value."""
        if not isinstance(body, dict):
            raise VerificationError(f"{path} must be an object")
        self.body: JSONObject = body
        self.path = path
        self._left = {name: value for name, value in body.items() if value not in (None, "", {}, [])}

    def take(self, name: str) -> JSON:
        """Return a field and mark it as read; None when it is missing."""
        return self._left.pop(name, None)

    def text(self, name: str) -> str:
        """Return a text, "" when it is missing."""
        found = self.take(name)
        if found is not None and not isinstance(found, str):
            raise VerificationError(f"{self.path}.{name} must be a string")
        return found or ""

    def flag(self, name: str) -> bool:
        """Return a boolean, False when it is missing."""
        found = self.take(name)
        if found is not None and not isinstance(found, bool):
            raise VerificationError(f"{self.path}.{name} must be true or false")
        return bool(found)

    def count(self, name: str) -> int:
        """Return a number that is not negative, 0 when it is missing."""
        found = self.take(name)
        if found is None:
            return 0
        if isinstance(found, bool) or not isinstance(found, int) or found < 0:
            raise VerificationError(f"{self.path}.{name} must be a number that is not negative")
        return found

    def texts(self, name: str) -> Mapping[str, str]:
        """Return an object of texts, an empty one when it is missing."""
        found = self.take(name)
        if found is None:
            return {}
        if not isinstance(found, dict) or not all(isinstance(each, str) for each in found.values()):
            raise VerificationError(f"{self.path}.{name} must be an object of strings")
        return found

    def object(self, name: str) -> AttestorFields | None:
        """Return an object; None when it is missing. An empty object is returned as such."""
        found = self.take(name)
        if found is None and self.body.get(name) == {}:
            found = {}
        return None if found is None else AttestorFields(found, f"{self.path}.{name}")

    def finish(self) -> None:
        """Raise VerificationError when a field was not read."""
        for name in self._left:
            raise VerificationError(f"{self.path}.{name} is not supported")
