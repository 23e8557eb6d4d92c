"""Status errors carry the codes, reasons and texts of an API server, and survive the way over the wire."""

from __future__ import annotations

import pytest

from pyverno.kube.status import (
    Cause,
    FieldError,
    StatusError,
    already_exists,
    bad_request,
    conflict,
    expired,
    forbidden,
    internal_error,
    invalid,
    not_found,
    path_not_found,
    request_too_large,
    server_timeout,
    service_unavailable,
    too_many_requests,
    unauthorized,
    unsupported_media_type,
)

TEXTS = [
    (bad_request("no"), 400, "BadRequest", "no"),
    (unauthorized(), 401, "Unauthorized", "Unauthorized"),
    (forbidden("apps", "deployments", "", "no"), 403, "Forbidden", "deployments.apps is forbidden: no"),
    (forbidden("", "", "", "no"), 403, "Forbidden", "forbidden: no"),
    (not_found("apps", "deployments", "web"), 404, "NotFound", 'deployments.apps "web" not found'),
    (path_not_found(), 404, "NotFound", "the server could not find the requested resource"),
    (already_exists("", "pods", "web"), 409, "AlreadyExists", 'pods "web" already exists'),
    (
        conflict("", "pods", "web"),
        409,
        "Conflict",
        'Operation cannot be fulfilled on pods "web": the object has been modified; '
        "please apply your changes to the latest version and try again",
    ),
    (expired("gone"), 410, "Expired", "gone"),
    (request_too_large("big"), 413, "RequestEntityTooLarge", "big"),
    (
        unsupported_media_type(["a/b", "c/d"]),
        415,
        "UnsupportedMediaType",
        "the body of the request was in an unknown format - accepted media types include: a/b, c/d",
    ),
    (too_many_requests("later"), 429, "TooManyRequests", "later"),
    (internal_error("bad luck"), 500, "InternalError", "Internal error occurred: bad luck"),
    (service_unavailable("not now"), 503, "ServiceUnavailable", "not now"),
    (server_timeout("too slow"), 504, "Timeout", "Timeout: too slow"),
]


@pytest.mark.parametrize(("error", "code", "reason", "text"), TEXTS)
def test_errors_have_the_texts_of_an_api_server(error: StatusError, code: int, reason: str, text: str) -> None:
    """Code, reason and message, which kubectl prints and clients match."""
    assert (code, reason, text) == (error.status, error.reason, str(error))


@pytest.mark.parametrize("error", [row[0] for row in TEXTS])
def test_an_error_survives_the_wire(error: StatusError) -> None:
    """Reading what was written gives the same object again."""
    assert error.to_json() == StatusError.from_json(error.to_json()).to_json()


def test_invalid_lists_its_fields_and_their_causes() -> None:
    """Two fields are in brackets, each is a cause of its own."""
    error = invalid(
        "apps",
        "Deployment",
        "web",
        [FieldError("spec.a", "Required value"), FieldError("spec.b", "Invalid value", "must not be", '"x"')],
    )
    assert 'Deployment.apps "web" is invalid: [spec.a: Required value, spec.b: Invalid value: "x": must not be]' == str(
        error
    )
    assert (
        Cause("FieldValueRequired", "Required value", "spec.a"),
        Cause("FieldValueInvalid", 'Invalid value: "x": must not be', "spec.b"),
    ) == error.causes


def test_a_body_that_is_no_status_still_gives_an_error() -> None:
    """An answer of a proxy in between has no reason and no details."""
    error = StatusError.from_json({"details": 1, "code": "x"}, status=502)
    assert (502, "", "") == (error.status, error.reason, str(error))
