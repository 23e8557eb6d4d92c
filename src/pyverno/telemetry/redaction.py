"""Requests without their confidential values: the data of Secrets, copies of applied manifests, and chosen fields.

A field is chosen by a path: names joined by dots, with `*` and `?` as wildcards within a name, `*` for an element of a
list, and `**` for any number of levels: `**.env.*.value`, `metadata.annotations.example?com/token`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from pyverno.errors import UsageError
from pyverno.kube.admissionreview import AdmissionRequest
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.wildcard import match
from pyverno.telemetry.payloadlog import redacted

__all__ = ["HIDDEN", "Redaction", "parse_field"]

HIDDEN: Final = "**REDACTED**"
_OBJECTS: Final = ("object", "oldObject")
_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_ANY_DEPTH: Final = "**"

Field = tuple[str, ...]


def parse_field(text: str) -> Field:
    """Return the names of a path; raises UsageError for an empty one.

    >>> parse_field("**.env.*.value")
    ('**', 'env', '*', 'value')
    """
    names = tuple(text.split("."))
    if not all(names) or names[-1] == _ANY_DEPTH:
        raise UsageError(f"invalid field `{text}`: expected names joined by dots, such as `spec.containers.*.env`")
    return names


class Redaction:
    """Removes confidential values from requests; fields are those of objects of every kind."""

    def __init__(self, fields: Sequence[Field] = ()) -> None:
        """Take the paths of the fields to remove beside the data of Secrets."""
        self._fields = tuple(fields)

    def request(self, admission_request: AdmissionRequest) -> tuple[JSONObject, bool]:
        """Return the request without confidential values, and whether there were any."""
        found = dict(admission_request.request)
        for name in _OBJECTS:
            if found.get(name) is not None:
                body = redacted(found[name]) if admission_request.is_secret else found[name]
                found[name] = self.document(body)
        return found, any(found.get(name) != admission_request.request.get(name) for name in _OBJECTS)

    def document(self, body: JSON) -> JSON:
        """Return an object without chosen fields and without the copy of its manifest that `kubectl apply` keeps.

        >>> Redaction([parse_field("**.env.*.value")]).document({"a": {"env": [{"name": "x", "value": "y"}]}})
        {'a': {'env': [{'name': 'x', 'value': '**REDACTED**'}]}}
        """
        return _without(body, [*self._fields, ("metadata", "annotations", _APPLIED)])


def _without(value: JSON, fields: Sequence[Field]) -> JSON:
    """Return a value in which what the fields lead to is replaced."""
    if not fields:
        return value
    if isinstance(value, dict):
        return {key: _replace(below, key, fields) for key, below in value.items()}
    if isinstance(value, list):
        return [_replace(below, "*", fields) for below in value]
    return value


def _replace(value: JSON, key: str, fields: Sequence[Field]) -> JSON:
    left = [*dict.fromkeys(rest for each in fields for rest in _below(each, key))]
    return HIDDEN if () in left else _without(value, left)


def _below(field: Field, key: str) -> Iterator[Field]:
    """Yield the remaining path of a field below a key."""
    head, rest = field[0], field[1:]
    if head == _ANY_DEPTH:
        yield field
        yield from _below(rest, key)
    elif match(head, key):
        yield rest
