"""Kyverno's libraries of data: hash, json, yaml, math, transform, gzip, user, and the lenient `orValue`.

Functions whose names have a prefix (`hash.md5`) also exist without it.
"""

from __future__ import annotations

import gzip
import hashlib
import math
import zlib
from typing import Final

from pyverno.errors import DocumentError, EvaluationError
from pyverno.kube.json import JSON, decode, encode
from pyverno.kube.yaml.documents import load_documents
from pyverno.lang.cel.checking.structs import DeclaredTypes
from pyverno.lang.cel.declarations import Declaration, Implementation, Library, function
from pyverno.lang.cel.faults import OperandError
from pyverno.lang.cel.json_values import to_json, with_doubles
from pyverno.lang.cel.libraries.kyverno.hostcalls import LibraryContext
from pyverno.lang.cel.libraries.math import round_half_away
from pyverno.lang.cel.runtime.evaluation import Evaluation
from pyverno.lang.cel.scalars import Duration
from pyverno.lang.cel.syntax.macros import OR_VALUE_MACROS
from pyverno.lang.cel.types import STRING, opaque
from pyverno.lang.cel.values import Optional, StructValue, Value, type_name
from pyverno.lang.cel.work import Work, instant, nodes, reading, walking

__all__ = ["GZIP", "HASH", "JSON_LIBRARY", "OR_VALUE", "ROUND", "TRANSFORM", "USER", "USER_TYPES", "YAML"]

MAX_DECOMPRESSED: Final = 10 * 1024 * 1024
MAX_RATIO: Final = 100
PACKED_PER_STEP: Final = 16
MADE_PER_STEP: Final = 256
_CAMEL: Final = (1, 18)


def _with_prefix(
    prefix: str, name: str, signature: str, implementation: Implementation, *, work: Work
) -> tuple[Declaration, ...]:
    return (
        function(name, signature, work=work)(implementation),
        function(f"{prefix}.{name}", signature, work=work, since=_CAMEL)(implementation),
    )


# hash


def _md5(text: str) -> str:
    """The MD5 of a text in hexadecimal.

    CEL: hash.md5('abc') ⇒ '900150983cd24fb0d6963f7d28e17f72'
    """
    return hashlib.md5(text.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()


def _sha1(text: str) -> str:
    """The SHA-1 of a text in hexadecimal.

    CEL: sha1('abc') ⇒ 'a9993e364706816aba3e25717850c26c9cd0d89d'
    """
    return hashlib.sha1(text.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()


def _sha256(text: str) -> str:
    """The SHA-256 of a text in hexadecimal.

    CEL: sha256('abc').substring(0, 8) ⇒ 'ba7816bf'
    """
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


HASH: Final = Library(
    "kyverno.hash",
    tuple(
        declaration
        for name, implementation in (("md5", _md5), ("sha1", _sha1), ("sha256", _sha256))
        for declaration in _with_prefix("hash", name, "(string) -> string", implementation, work=reading(per_step=128))
    ),
    introduced="1.17",
    doc="Digests of texts.",
)

# json and yaml

_JSON: Final = "json.Json"
_YAML: Final = "yaml.Yaml"
_ACCOUNT: Final = "user.ServiceAccount"


def _not_a_text(value: Value) -> EvaluationError:
    """Return the error for a value where a text is needed; cel-go has two forms of it."""
    if isinstance(value, (bool, bytes, dict, list, tuple)):
        name = "Bytes" if isinstance(value, bytes) else type_name(value)
        return EvaluationError(f"type conversion error from {name} to 'string'")
    return EvaluationError(f"unsupported type conversion from '{type_name(value)}' to string")


@function("unmarshal", f"{_JSON}.(dyn) -> dyn", metered=True, work=walking(1, per=4))
def unmarshal(evaluation: Evaluation, _: LibraryContext, text: Value) -> JSON:
    """The value of a JSON text; numbers are doubles.

    CEL: json.unmarshal('{"a": 1}').a == 1 ⇒ true
    """
    if not isinstance(text, str):
        raise _not_a_text(text)
    try:
        return with_doubles(decode(text), evaluation.runtime.budget)
    except DocumentError as error:
        raise OperandError("the text is no JSON", error.message) from None


@function("marshal", f"{_JSON}.(dyn) -> string", in_context=True, work=nodes(1, bytes_per_step=32, steps=4))
def marshal(evaluation: Evaluation, _: LibraryContext, value: Value) -> str:
    """The JSON text of a value; bytes as base64.

    CEL: json.marshal({'a': [1, 2]}) ⇒ '{"a":[1,2]}'
    """
    if value is None:
        return "0"  # COMPAT: cel-go's null is a number underneath
    if isinstance(value, StructValue) and value.cel_type == _ACCOUNT:
        value = {name.lower(): field for name, field in value.fields.items() if field}
    text = encode(to_json(value, _nanoseconds))
    evaluation.produce(len(text))
    return text


def _nanoseconds(value: Duration) -> int:
    # COMPAT: a duration of Go is a number of nanoseconds
    return value.ns


JSON_LIBRARY: Final = Library(
    "kyverno.json",
    (unmarshal, marshal),
    types=(opaque(_JSON),),
    variables={"json": opaque(_JSON)},
    globals={"json": LibraryContext(_JSON)},
    introduced="1.17",
    doc="JSON texts.",
)


@function("parse", f"{_YAML}.(string) -> dyn", metered=True, work=walking(1, steps=4))
def parse(evaluation: Evaluation, _: LibraryContext, text: str) -> JSON:
    """The first document of a YAML text, as Kubernetes reads YAML; numbers are doubles, nothing is null.

    CEL: yaml.parse('a: yes').a ⇒ true
    """
    try:
        documents = load_documents(text, duplicate_keys="last")
    except DocumentError as error:
        problem = "error converting YAML to JSON"
        raise OperandError(f"{problem}: the text is no YAML", f"{problem}: {error.message}") from None
    return with_doubles(documents[0].value, evaluation.runtime.budget) if documents else None


YAML: Final = Library(
    "kyverno.yaml",
    (parse,),
    types=(opaque(_YAML),),
    variables={"yaml": opaque(_YAML)},
    globals={"yaml": LibraryContext(_YAML)},
    introduced="1.17",
    doc="YAML texts.",
)

# math


@function("math.round", "(double, int) -> double", work=instant)
def round_(value: float, places: int) -> float:
    """The number rounded to decimal places (negative ones too), halves away from zero.

    CEL: math.round(3.14159, 2) ⇒ 3.14
    """
    try:
        shift = 10.0**places
        return round_half_away(value * shift) / shift
    except (OverflowError, ZeroDivisionError):
        return math.nan


ROUND: Final = Library("kyverno.math", (round_,), introduced="1.17", doc="Rounding to decimal places.")

# transform


def _list_to_map(keys: Value, values: Value, key_field: str, value_field: str) -> dict[str, Value]:
    """A map out of two lists of objects: keys from a field of the first, values from a field of the second.

    CEL: listObjToMap([{'n': 'a'}], [{'v': 1}], 'n', 'v') ⇒ {'a': 1}
    """
    if len(keys) != len(values):
        raise EvaluationError(f"listObjToMap must take lists of equal length. list1: {len(keys)}, list2: {len(values)}")
    result: dict[str, Value] = {}
    for one, two in zip(keys, values, strict=True):
        key = one.get(key_field) if isinstance(one, dict) else None
        if not isinstance(key, str):
            raise EvaluationError("the passed key name cannot be handled as a string in the key object list")
        if not isinstance(two, dict):
            raise EvaluationError("object cannot be handled as a map string to any in the value object list")
        result[key] = two.get(value_field)
    return result


TRANSFORM: Final = Library(
    "kyverno.transform",
    _with_prefix(
        "transform",
        "listObjToMap",
        "(list(dyn), list(dyn), string, string) -> map(dyn, dyn)",
        _list_to_map,
        work=walking(),
    ),
    introduced="1.17",
    doc="Maps out of lists of objects.",
)

# gzip


@function("gzip.compress", "(dyn) -> bytes", work=walking(per=8))
def compress(value: Value) -> bytes:
    """The gzip of a text, the same every time.

    CEL: gzip.decompress(gzip.compress('hello')) ⇒ 'hello'
    """
    if not isinstance(value, str):
        raise _not_a_text(value)
    return gzip.compress(value.encode("utf-8", "surrogatepass"), mtime=0)


@function("gzip.decompress", "(bytes) -> string", in_context=True, work=instant)
def decompress(evaluation: Evaluation, data: bytes) -> str:
    """The text in gzip data; at most 10 MiB, and at most a hundred times the data.

    CEL: gzip.decompress(gzip.compress('')) ⇒ ''
    """
    limit = min(MAX_DECOMPRESSED, max(len(data) * MAX_RATIO, 4096))
    # Kyverno: at most 10 MiB; a review may produce less
    limit = min(limit, evaluation.runtime.budget.text_bytes)
    evaluation.afford("gzip.decompress", len(data) // PACKED_PER_STEP)
    inflater = zlib.decompressobj(wbits=31)
    try:
        text = inflater.decompress(data, limit + 1)
    except zlib.error:
        raise EvaluationError("gzip: invalid header") from None
    if len(text) > limit:
        raise EvaluationError(f"gzip: the decompressed text exceeds {limit} bytes")
    if not inflater.eof:
        raise EvaluationError("unexpected EOF")
    evaluation.produce(len(text))
    evaluation.afford("gzip.decompress", len(text) // MADE_PER_STEP)
    return text.decode("utf-8", "replace")


GZIP: Final = Library("kyverno.gzip", (compress, decompress), introduced="1.18", doc="Compression.")

# user

_ACCOUNT_PREFIX: Final = "system:serviceaccount:"


def _parse_service_account(username: str) -> StructValue:
    """The service account behind a user name; `Name` and `Namespace` are empty for other users.

    CEL: user.parseServiceAccount('system:serviceaccount:ns:sa').Name ⇒ 'sa'
    """
    namespace = name = ""
    if username.startswith(_ACCOUNT_PREFIX):
        head, colon, tail = username.removeprefix(_ACCOUNT_PREFIX).partition(":")
        namespace, name = (head, tail) if colon else ("", "")
    return StructValue(_ACCOUNT, {"Namespace": namespace, "Name": name})


USER: Final = Library(
    "kyverno.user",
    _with_prefix(
        "user", "parseServiceAccount", f"(string) -> object({_ACCOUNT})", _parse_service_account, work=reading()
    ),
    introduced="1.14",
    doc="User names.",
)


USER_TYPES: Final = DeclaredTypes({_ACCOUNT: {"Name": STRING, "Namespace": STRING}})
"""The struct types of the user library."""


# orValue


@function("__orValueCompat__", "(dyn, dyn) -> dyn", work=instant)
def or_value(value: Value, other: Value) -> Value:
    """The value of an optional or a default; a plain value stays as it is, null included.

    CEL: {'a': 1}.orValue(2) ⇒ {'a': 1}
    """
    if isinstance(value, Optional):
        return value.value if value.present else other
    return value


OR_VALUE: Final = Library(
    "kyverno.compat", (or_value,), macros=OR_VALUE_MACROS, introduced="1.19", doc="`orValue` on plain values."
)
