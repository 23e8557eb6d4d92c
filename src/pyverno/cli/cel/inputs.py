"""The inputs of `pyverno cel`: expressions, documents and variables, read from arguments, files and stdin.

Documents become the variables of policies: the object, the old object, and the request.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pyverno.errors import UsageError
from pyverno.kube.admissionreview import request_of
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.yaml.documents import load_documents
from pyverno.lazyregex import regex
from pyverno.offline.files import STDIN, read_file, read_stdin

__all__ = ["DOCUMENT_FLAGS", "Inputs", "bindings", "is_variable_name"]

DOCUMENT_FLAGS: Mapping[str, str] = {
    "object": "object",
    "old_object": "oldObject",
    "params": "params",
    "namespace_object": "namespaceObject",
    "request": "request",
}
"""Flags with a document, and the variables that they bind."""

_NAME = regex(r"[A-Za-z_][A-Za-z0-9_]*")


def is_variable_name(text: str) -> bool:
    """Return whether a text can be the name of a variable."""
    return _NAME.fullmatch(text) is not None


class Inputs:
    """Reads files and standard input, which is read at most once."""

    __slots__ = ("_reader",)

    def __init__(self) -> None:
        self._reader = ""

    def expressions(self, words: Sequence[str], files: Sequence[str]) -> list[str]:
        """Return the expressions of arguments and files; `-` is standard input. Raises UsageError for none."""
        read = [self._read_text("-", "an expression") if word == STDIN else word for word in words]
        read += [self._read_text(path, "an expression") for path in files]
        if not read:
            raise UsageError("at least one expression is required (an argument, or a file with -q)")
        return [text.rstrip() for text in read]

    def variables(self, document: str, named: Mapping[str, str], texts: Sequence[str]) -> dict[str, JSON]:
        """Return the values of variables by name.

        `document` is a file whose content determines its variable, `named` are files by variable, `texts` are
        `NAME=YAML`; the later ones win. Raises UsageError for what cannot be read.
        """
        found: dict[str, JSON] = _recognised(self.document(document, "the input")) if document else {}
        for name, path in named.items():
            if path:
                value = self.document(path, name)
                found |= _review(value) if name == "request" else {name: value}
        for text in texts:
            name, equals, value_text = text.partition("=")
            if not equals or not is_variable_name(name):
                raise UsageError(f'invalid argument "{text}" for "--var" flag: expected NAME=YAML')
            found[name] = _one_document(value_text, f"--var {name}")
        return found

    def document(self, path: str, what: str) -> JSON:
        """Return the one YAML or JSON document of a file or of standard input."""
        return _one_document(self._bytes(path, what), path)

    def _read_text(self, path: str, what: str) -> str:
        return self._bytes(path, what).decode("utf-8", "replace")

    def _bytes(self, path: str, what: str) -> bytes:
        if path != STDIN:
            return read_file(Path(path))
        if self._reader:
            raise UsageError(f"standard input cannot be read for {what}: it was read for {self._reader}")
        self._reader = what
        return read_stdin()


def _one_document(data: bytes | str, name: str) -> JSON:
    try:
        documents = load_documents(data, file=name)
    except RecursionError:
        raise UsageError(f"`{name}` is nested too deeply") from None
    if len(documents) > 1:
        raise UsageError(f"`{name}` holds {len(documents)} documents, expected one")
    return documents[0].value if documents else None


def _recognised(document: JSON) -> dict[str, JSON]:
    """Return the variables of a document by its form: a review, an object of Kubernetes, or values by name."""
    if not isinstance(document, dict):
        return {"object": document}
    if document.get("kind") == "AdmissionReview":
        return _review(document)
    if isinstance(document.get("apiVersion"), str) and isinstance(document.get("kind"), str):
        return {"object": document}
    wrong = [str(name) for name in document if not is_variable_name(str(name))]
    if wrong:
        raise UsageError(f"the input has keys that cannot be names of variables: {', '.join(wrong)}")
    return {**document, **_review(document)} if "request" in document else dict(document)


def _review(document: JSON) -> dict[str, JSON]:
    """Return `request` of an AdmissionReview or AdmissionRequest, and the objects in it."""
    body = request_of(document)
    objects: dict[str, JSON] = {name: body[name] for name in ("object", "oldObject") if name in body}
    request: JSONObject = {name: value for name, value in body.items() if name not in ("object", "oldObject", "uid")}
    return {"request": request, **objects}


def bindings(given: Mapping[str, JSON], *, is_kyverno: bool = True) -> dict[str, JSON]:
    """Return the variables of an admission request about the given objects; given variables take precedence.

    Without a request it is a CREATE, an UPDATE where there is an old object too, a DELETE where there is only that.
    A missing object differs between Kyverno (an empty map) and Kubernetes (null).

    >>> bindings({"object": {"apiVersion": "v1", "kind": "Pod"}})["request"]["operation"]
    'CREATE'
    """
    derived = _admission(given, is_kyverno=is_kyverno)
    bound = {**derived, **given}
    own, asked = derived.get("request"), given.get("request")
    if isinstance(own, dict) and isinstance(asked, dict):
        bound["request"] = {**own, **asked}
    return bound


def _admission(given: Mapping[str, JSON], *, is_kyverno: bool) -> dict[str, JSON]:
    from pyverno.engine.cel.session import authorizer_bindings, request_bindings
    from pyverno.engine.request import Operation, Request
    from pyverno.kube.resource import Resource
    from pyverno.policy.kinds import KNOWN_KINDS

    # the values of a policy without variables and exceptions
    known: dict[str, JSON] = {"variables": {}, "exceptions": {"allowedImages": [], "allowedValues": []}}
    if "object" not in given and "oldObject" not in given:
        return known
    known |= dict.fromkeys(("object", "oldObject", "namespaceObject", "params"))
    new, old = given.get("object"), given.get("oldObject")
    subject = old if new is None else new
    if not isinstance(subject, dict):
        return known
    operation = Operation.DELETE if new is None else Operation.CREATE if old is None else Operation.UPDATE
    kind = KNOWN_KINDS.find(Resource(subject).gvk)
    request = Request.from_manifest(subject, operation=operation, old=old, gvr=None if kind is None else kind.gvr)
    return {**known, **authorizer_bindings(request), **request_bindings(request, has_objects=is_kyverno)}
