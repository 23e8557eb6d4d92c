"""Answers to authorization requests, and signed tokens."""

import base64
import hashlib
import hmac
import json
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from pyverno.errors import EvaluationError
from pyverno.lang.cel import CompileError
from pyverno.lang.cel.json_values import to_json
from pyverno.lang.cel.libraries.authz import ENVOY_RESPONSE, HTTP_RESPONSE
from pyverno.lang.cel.presets import authz_environment, read_check_request
from pyverno.lang.cel.types import DYN, STRING
from pyverno.lang.runtime import Runtime
from tests.unit.lang.cel.test_host import Clock, Recorder

ENVOY = authz_environment("Envoy").with_variables({"key": STRING, "token": STRING, "anything": DYN})
HTTP = authz_environment("HTTP").with_variables({"anything": DYN})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("envoy.Allowed().Response()", {"status": {"code": 0}, "okResponse": {}}),
        (
            "envoy.Allowed().WithHeader('x-user', 'bob').WithoutHeader('y').WithQueryParam('q', '1').Response()",
            {
                "status": {"code": 0},
                "okResponse": {
                    "headers": [{"header": {"key": "x-user", "value": "bob"}}],
                    "headersToRemove": ["y"],
                    "queryParametersToSet": [{"key": "q", "value": "1"}],
                },
            },
        ),
        (
            "envoy.Denied(403).WithBody('no').WithHeader(envoy.Header('a', '').KeepEmptyValue()).Response()"
            ".WithMessage('m')",
            {
                "status": {"code": 7, "message": "m"},
                "deniedResponse": {
                    "status": {"code": 403},
                    "body": "no",
                    "headers": [{"header": {"key": "a", "value": ""}, "keepEmptyValue": True}],
                },
            },
        ),
    ],
)
def test_envoy_answers_are_built_step_by_step(text: str, expected: Any) -> None:
    """Each step adds to the answer; `Response` finishes it."""
    program = ENVOY.compile(text, expected=ENVOY_RESPONSE)
    assert to_json(program.evaluate({})) == expected


def test_an_answer_or_null_is_what_a_validation_gives() -> None:
    """A conditional with null in either branch has the answer's type; dyn is refused."""
    text = "object.attributes.method != 'GET' ? http.Denied('read only').Response() : null"
    program = HTTP.compile(text, expected=HTTP_RESPONSE)
    assert program.evaluate({"object": read_check_request("HTTP", {"attributes": {"method": "GET"}})}) is None
    assert HTTP.compile("true ? null : http.Allowed().Response()", expected=HTTP_RESPONSE).evaluate({}) is None
    with pytest.raises(CompileError, match="output is expected to be of type"):
        HTTP.compile("anything.x", expected=HTTP_RESPONSE)


def test_headers_are_found_in_any_case() -> None:
    """Header names do not regard case, query parameters do."""
    attributes = {"header": {"X-A": ["1", "2"]}, "query": {"q": ["3"]}}
    values = {"object": read_check_request("HTTP", {"attributes": attributes})}
    assert HTTP.compile("object.attributes.Header('x-a')").evaluate(values) == ["1", "2"]
    assert HTTP.compile("object.attributes.QueryParam('Q')").evaluate(values) == []
    assert HTTP.compile("object.attributes.QueryParam('q')").evaluate(values) == ["3"]
    assert HTTP.compile("object.attributes.Header('x-b')").evaluate(values) == []


@pytest.mark.parametrize(
    ("mode", "text", "expected"),
    [
        ("Envoy", "has(object.attributes) && !has(object.attributes.source)", True),
        ("Envoy", "object.attributes.source.address.socket_address.port_value", 0),
        ("Envoy", "object.attributes.request.time == timestamp(0)", True),
        ("Envoy", "object.attributes.context_extensions.size()", 0),
        ("Envoy", "object.attributes.?tls_session.sni.orValue('none')", "none"),
        ("HTTP", "object.attributes.body == b'' && object.attributes.contentLength == 0", True),
        ("HTTP", "has(object.attributes)", False),
    ],
)
def test_what_a_request_leaves_out_has_the_zero_of_its_type(mode: str, text: str, expected: Any) -> None:
    """Only protobuf (Envoy) distinguishes an empty message from a missing one."""
    program = authz_environment(mode).compile(text)
    assert program.evaluate({"object": read_check_request(mode, {"attributes": {}})}) == expected


def test_requests_are_typed() -> None:
    """A field that requests do not have is found out before any request comes."""
    with pytest.raises(CompileError, match="undefined field 'verb'"):
        HTTP.compile("object.attributes.verb")
    with pytest.raises(CompileError, match="undefined field 'portValue'"):
        ENVOY.compile("object.attributes.source.address.socket_address.portValue")


def encoded(data: bytes) -> str:
    """Return base64 as tokens have it."""
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def body(algorithm: str, claims: dict[str, Any], **header: str) -> str:
    """Return the signed part of a token."""
    head = json.dumps({"alg": algorithm, **header}).encode()
    return f"{encoded(head)}.{encoded(json.dumps(claims).encode())}"


def signed_with_secret(claims: dict[str, Any], secret: bytes = b"secret", algorithm: str = "HS256") -> str:
    """Return a token signed with a secret."""
    text = body(algorithm, claims)
    return f"{text}.{encoded(hmac.new(secret, text.encode(), hashlib.sha256).digest())}"


@pytest.mark.parametrize(
    ("claims", "valid"),
    [({"role": "admin"}, True), ({"exp": 61}, True), ({"exp": 60}, False), ({"nbf": 61}, False), ({"exp": "x"}, False)],
)
def test_times_decide_whether_a_token_is_valid(claims: dict[str, Any], valid: bool) -> None:
    """The clock is at one minute past the epoch."""
    program = ENVOY.compile("jwt.Decode(token, 'secret')")
    token = program.evaluate({"token": signed_with_secret(claims)}, Runtime(host=Clock()))
    assert token.fields["Valid"] is valid
    assert token.fields["Claims"].keys() == claims.keys()


@pytest.mark.parametrize(
    "token",
    [
        "",
        "a.b.c",
        signed_with_secret({}, b"other"),
        body("none", {}) + ".",
        signed_with_secret({}, algorithm="RS256"),
        signed_with_secret({}, algorithm="none"),
    ],
)
def test_bad_signatures_and_unsigned_tokens_are_errors(token: str) -> None:
    """Nothing but a right signature of a fitting algorithm gives claims."""
    with pytest.raises(EvaluationError):
        ENVOY.compile("jwt.Decode(token, 'secret').Valid").evaluate({"token": token}, Runtime(host=Clock()))


def test_public_keys_verify_tokens() -> None:
    """RSA by PEM and EC by key set; a public key is never taken for a secret."""
    runtime = Runtime(host=Clock())
    private = rsa.generate_private_key(65537, 2048)
    text = body("RS256", {"a": 1})
    token = f"{text}.{encoded(private.sign(text.encode(), padding.PKCS1v15(), hashes.SHA256()))}"
    pem = private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    program = ENVOY.compile("jwt.Decode(token, key).Claims.a == 1")
    assert program.evaluate({"token": token, "key": pem.decode()}, runtime) is True
    with pytest.raises(EvaluationError):
        program.evaluate({"token": signed_with_secret({}, pem), "key": pem.decode()}, runtime)

    curve = ec.generate_private_key(ec.SECP256R1())
    text = body("ES256", {"a": 1}, kid="k1")
    one, two = decode_dss_signature(curve.sign(text.encode(), ec.ECDSA(hashes.SHA256())))
    token = f"{text}.{encoded(one.to_bytes(32, 'big') + two.to_bytes(32, 'big'))}"
    numbers = curve.public_key().public_numbers()
    jwk = {
        "kty": "EC", "crv": "P-256", "kid": "k1",
        "x": encoded(numbers.x.to_bytes(32, "big")), "y": encoded(numbers.y.to_bytes(32, "big")),
    }  # fmt: skip
    host = Recorder(http=(200, json.dumps({"keys": [jwk]}).encode()))
    fetched = ENVOY.compile("jwt.Decode(token, jwks.Fetch('https://keys')).Claims.a == 1")
    assert fetched.evaluate({"token": token}, runtime, host=host) is True
    other = Recorder(http=(200, json.dumps({"keys": [{**jwk, "kid": "k2"}]}).encode()))
    with pytest.raises(EvaluationError):
        fetched.evaluate({"token": token}, runtime, host=other)
