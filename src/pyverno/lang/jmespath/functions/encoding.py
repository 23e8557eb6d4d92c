"""Functions that read and write encodings: base64, JSON, YAML and hashes.

What a decoder gives is data: this module must never treat it as an expression.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from typing import Final

from pyverno.errors import DocumentError, EvaluationError
from pyverno.kube.json import JSON
from pyverno.kube.yaml.documents import load_documents
from pyverno.lang.jmespath.cost import FLAT, READ, Cost
from pyverno.lang.jmespath.function import ANY, STRING, function, unreadable
from pyverno.lang.jmespath.jsontext import read_json
from pyverno.lang.runtime import Runtime
from pyverno.lazyregex import regex

__all__ = ["FUNCTIONS"]

_ALPHABET: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
_NEWLINES: Final = b"\r\n"
_PAD: Final = ord("=")
_WEIGHT: Final = 16
_ESCAPED_BYTES: Final = regex("[\udc80-\udcff]")


@function("base64_decode", STRING, returns=STRING, cost=Cost(per_step=64, copies=True), note="decodes base64")
def base64_decode(runtime: Runtime, text: str) -> JSON:
    """Decode base64 (standard alphabet, padded); bytes that are not UTF-8 become U+FFFD.

    >>> base64_decode('SGVsbG8=')
    "Hello"
    >>> base64_decode('aGVsbG8')
    error: illegal base64 data at input byte 4
    """
    raw = _utf8(text)
    joined = raw.translate(None, _NEWLINES)
    try:
        if len(joined) % 4:
            raise binascii.Error  # an error that the library does not see
        decoded = base64.b64decode(joined, validate=True)
    except binascii.Error:
        runtime.budget.charge_bytes(len(raw), per_step=4)
        raise EvaluationError(f"illegal base64 data at input byte {_first_illegal(raw)}") from None
    return _ESCAPED_BYTES.sub("\ufffd", decoded.decode("utf-8", "surrogateescape"))


@function("base64_encode", STRING, returns=STRING, cost=READ, note="encodes a text as base64")
def base64_encode(runtime: Runtime, text: str) -> JSON:
    """Encode the UTF-8 bytes of a text as base64.

    >>> base64_encode('héllo')
    "aMOpbGxv"
    """
    raw = _utf8(text)
    runtime.budget.produce((len(raw) + 2) // 3 * 4)
    return base64.b64encode(raw).decode("ascii")


@function("parse_json", STRING, returns=ANY, cost=FLAT, note="reads a JSON text; the opposite of `to_string`")
def parse_json(runtime: Runtime, text: str) -> JSON:
    """Read a JSON text; of equal keys the last one wins.

    >>> parse_json('{"a": [1]}').a[0]
    1
    >>> parse_json('abc')
    error: JMESPath function 'parse_json': argument #1 (a string of 3 characters) is not JSON
    """
    return read_json(text, runtime.budget, unreadable("parse_json", 1, text, "JSON").message)


@function(
    "parse_yaml",
    STRING,
    returns=ANY,
    cost=Cost(per_step=1, most=131_072, copies=True),
    note="reads the first document of a YAML text",
)
def parse_yaml(runtime: Runtime, text: str) -> JSON:
    """Read the first document of a YAML 1.1 text; keys become texts, of equal keys the last one wins.

    >>> parse_yaml('a: yes')
    {"a": true}
    >>> parse_yaml('a: 010')
    {"a": 8}
    """
    runtime.budget.produce(len(text), weight=_WEIGHT)
    try:
        documents = load_documents(text, duplicate_keys="last")
    except DocumentError as error:
        raise unreadable("parse_yaml", 1, text, "YAML", error.message) from None
    return documents[0].value if documents else None


@function("sha256", STRING, returns=STRING, cost=READ, note="hashes a text with SHA-256")
def sha256(_runtime: Runtime, text: str) -> JSON:
    """Return the SHA-256 of a text's UTF-8 bytes in lower-case hexadecimal.

    >>> sha256('abc')
    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    """
    return hashlib.sha256(_utf8(text)).hexdigest()


@function("sha1", STRING, returns=STRING, cost=READ, note="hashes a text with SHA-1")
def sha1(_runtime: Runtime, text: str) -> JSON:
    """Return the SHA-1 of a text's UTF-8 bytes in lower-case hexadecimal; not for security.

    >>> sha1('abc')
    "a9993e364706816aba3e25717850c26c9cd0d89d"
    """
    return hashlib.sha1(_utf8(text), usedforsecurity=False).hexdigest()


@function("md5", STRING, returns=STRING, cost=READ, note="hashes a text with MD5")
def md5(_runtime: Runtime, text: str) -> JSON:
    """Return the MD5 of a text's UTF-8 bytes in lower-case hexadecimal; not for security.

    >>> md5('abc')
    "900150983cd24fb0d6963f7d28e17f72"
    """
    return hashlib.md5(_utf8(text), usedforsecurity=False).hexdigest()


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _first_illegal(data: bytes) -> int | None:
    """Return the offset at which Go's encoding/base64 finds a text illegal, None when it does not."""
    position, column = 0, 0
    while position < len(data):
        byte = data[position]
        position += 1
        if byte in _ALPHABET:
            column = (column + 1) % 4
        elif byte == _PAD:
            return _illegal_padding(data, position, column)
        elif byte not in _NEWLINES:
            return position - 1
    return position - column if column else None


def _illegal_padding(data: bytes, position: int, column: int) -> int | None:
    """Check the characters after the first padding character, which is just before `position`."""
    if column < 2:
        return position - 1
    if column == 2:
        position = _skip_newlines(data, position)
        if position == len(data):
            return position
        if data[position] != _PAD:
            return position - 1
        position += 1
    position = _skip_newlines(data, position)
    return position if position < len(data) else None


def _skip_newlines(data: bytes, position: int) -> int:
    while position < len(data) and data[position] in _NEWLINES:
        position += 1
    return position


FUNCTIONS: Final = (base64_decode, base64_encode, parse_json, parse_yaml, sha256, sha1, md5)
