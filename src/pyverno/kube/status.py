"""Kubernetes' `Status`: the errors of an API server.

The functions return the errors of the API machinery with its codes, reasons and texts, because clients print and match
them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import ClassVar

from pyverno.errors import PyvernoError
from pyverno.kube.json import JSONObject
from pyverno.value import dataclass

__all__ = [
    "Cause",
    "FieldError",
    "StatusError",
    "already_exists",
    "bad_request",
    "conflict",
    "expired",
    "forbidden",
    "internal_error",
    "invalid",
    "not_acceptable",
    "not_allowed",
    "not_found",
    "path_not_found",
    "request_too_large",
    "resource_name",
    "server_timeout",
    "service_unavailable",
    "too_many_requests",
    "unauthorized",
    "unsupported_media_type",
]


@dataclass(frozen=True, slots=True)
class Cause:
    """One reason among several: `FieldValueRequired`, the text, and the field."""

    reason: str
    message: str
    field: str = ""

    def to_json(self) -> JSONObject:
        """Return the entry of `details.causes`."""
        parts = {"reason": self.reason, "message": self.message, "field": self.field}
        return {key: value for key, value in parts.items() if value}


@dataclass(frozen=True, slots=True)
class FieldError:
    """An error in one field, worded like Kubernetes' `field.Error`.

    `kind` is the text that follows the field (`Invalid value`, `Required value`, `Forbidden`, `Unsupported value`,
    `Duplicate value`, `Too long`, `Too many`, `Not found`, `Internal error`); `value` is the bad value as Go writes it,
    or None. `reason` is the machine readable reason where it is not the one of `kind`.

    >>> str(FieldError("spec.replicas", "Invalid value", "must be greater than or equal to 0", "-1"))
    'spec.replicas: Invalid value: -1: must be greater than or equal to 0'
    """

    field: str
    kind: str
    detail: str = ""
    value: str | None = None
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"

    @property
    def message(self) -> str:
        """The text without the field."""
        return ": ".join(part for part in (self.kind, self.value, self.detail) if part)

    @property
    def cause(self) -> Cause:
        """The entry for `details.causes`."""
        return Cause(self.reason or CAUSE_REASONS.get(self.kind, "FieldValueInvalid"), self.message, self.field)


CAUSE_REASONS: Mapping[str, str] = {
    "Invalid value": "FieldValueInvalid",
    "Required value": "FieldValueRequired",
    "Duplicate value": "FieldValueDuplicate",
    "Unsupported value": "FieldValueNotSupported",
    "Forbidden": "FieldValueForbidden",
    "Not found": "FieldValueNotFound",
    "Too long": "FieldValueTooLong",
    "Too many": "FieldValueTooMany",
    "Internal error": "InternalError",
}


class StatusError(PyvernoError):
    """A request that an API server refused, with everything of its `Status` object."""

    code: ClassVar[str] = "status"

    def __init__(
        self,
        status: int,
        reason: str,
        message: str,
        *,
        group: str = "",
        kind: str = "",
        name: str = "",
        uid: str = "",
        causes: Iterable[Cause] = (),
        retry_after: int = 0,
        continue_token: str = "",
        shows_details: bool = False,
    ) -> None:
        """Take the HTTP code, the reason and the text; `kind` of the details is a kind or a plural name.

        `continue_token` continues a list that expired; `shows_details` also writes empty details.
        """
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.group = group
        self.kind = kind
        self.name = name
        self.uid = uid
        self.causes = tuple(causes)
        self.retry_after = retry_after
        self.continue_token = continue_token
        self.shows_details = shows_details

    def to_json(self) -> JSONObject:
        """Return the `Status` object.

        >>> not_found("", "pods", "web").to_json()["message"]
        'pods "web" not found'
        """
        details: JSONObject = {
            key: value
            for key, value in (
                ("name", self.name),
                ("group", self.group),
                ("kind", self.kind),
                ("uid", self.uid),
                ("causes", [cause.to_json() for cause in self.causes]),
                ("retryAfterSeconds", self.retry_after),
            )
            if value
        }
        metadata = {"continue": self.continue_token} if self.continue_token else {}
        body: JSONObject = {"kind": "Status", "apiVersion": "v1", "metadata": metadata, "status": "Failure"}
        body["message"] = self.message
        if self.reason:
            body["reason"] = self.reason
        if details or self.shows_details:
            body["details"] = details
        body["code"] = self.status
        return body

    @classmethod
    def from_json(cls, body: JSONObject, *, status: int = 0) -> StatusError:
        """Read a `Status` object; `status` is the HTTP code that counts where the object names none.

        >>> str(StatusError.from_json(not_found("apps", "deployments", "web").to_json()))
        'deployments.apps "web" not found'
        """
        written, metadata = body.get("details"), body.get("metadata")
        details = written if isinstance(written, dict) else {}
        causes = details.get("causes")
        return cls(
            _number(body.get("code")) or status,
            _read_text(body, "reason"),
            _read_text(body, "message"),
            group=_read_text(details, "group"),
            kind=_read_text(details, "kind"),
            name=_read_text(details, "name"),
            uid=_read_text(details, "uid"),
            causes=[
                Cause(_read_text(cause, "reason"), _read_text(cause, "message"), _read_text(cause, "field"))
                for cause in (causes if isinstance(causes, list) else ())
                if isinstance(cause, dict)
            ],
            retry_after=_number(details.get("retryAfterSeconds")),
            continue_token=_read_text(metadata, "continue") if isinstance(metadata, dict) else "",
            shows_details=written == {},
        )


def resource_name(group: str, plural: str) -> str:
    """Write a resource as messages name it.

    >>> resource_name("apps", "deployments"), resource_name("", "pods")
    ('deployments.apps', 'pods')
    """
    return f"{plural}.{group}" if group else plural


def bad_request(message: str) -> StatusError:
    """Return 400: the request itself is wrong."""
    return StatusError(HTTPStatus.BAD_REQUEST, "BadRequest", message)


def unauthorized(message: str = "Unauthorized") -> StatusError:
    """Return 401: the request is not authenticated."""
    return StatusError(HTTPStatus.UNAUTHORIZED, "Unauthorized", message)


def forbidden(group: str, plural: str, name: str, why: str, causes: Iterable[Cause] = ()) -> StatusError:
    """Return 403: the user may not, or an admission plugin refuses.

    >>> str(forbidden("", "pods", "web", "no room"))
    'pods "web" is forbidden: no room'
    """
    if not plural:
        message = f"forbidden: {why}"
    elif name:
        message = f'{resource_name(group, plural)} "{name}" is forbidden: {why}'
    else:
        message = f"{resource_name(group, plural)} is forbidden: {why}"
    return StatusError(HTTPStatus.FORBIDDEN, "Forbidden", message, group=group, kind=plural, name=name, causes=causes)


def not_found(group: str, plural: str, name: str) -> StatusError:
    """Return 404: there is no such object."""
    message = f'{resource_name(group, plural)} "{name}" not found'
    return StatusError(HTTPStatus.NOT_FOUND, "NotFound", message, group=group, kind=plural, name=name)


def path_not_found() -> StatusError:
    """Return 404: there is nothing at this path."""
    message = "the server could not find the requested resource"
    return StatusError(HTTPStatus.NOT_FOUND, "NotFound", message, shows_details=True)


def not_acceptable(accepted: Iterable[str]) -> StatusError:
    """Return 406: no media type that the client takes can be written."""
    message = f"only the following media types are accepted: {', '.join(accepted)}"
    return StatusError(HTTPStatus.NOT_ACCEPTABLE, "NotAcceptable", message)


def already_exists(group: str, plural: str, name: str) -> StatusError:
    """Return 409: an object of this name exists."""
    message = f'{resource_name(group, plural)} "{name}" already exists'
    return StatusError(HTTPStatus.CONFLICT, "AlreadyExists", message, group=group, kind=plural, name=name)


STALE = "the object has been modified; please apply your changes to the latest version and try again"


def conflict(group: str, plural: str, name: str, why: str = STALE) -> StatusError:
    """Return 409: the object is not what the writer believes it to be."""
    message = f'Operation cannot be fulfilled on {resource_name(group, plural)} "{name}": {why}'
    return StatusError(HTTPStatus.CONFLICT, "Conflict", message, group=group, kind=plural, name=name)


def expired(message: str, continue_token: str = "") -> StatusError:
    """Return 410: the requested version is gone; the token continues without it."""
    return StatusError(HTTPStatus.GONE, "Expired", message, continue_token=continue_token)


def request_too_large(message: str) -> StatusError:
    """Return 413: the body is larger than the server takes."""
    return StatusError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "RequestEntityTooLarge", message)


def not_allowed() -> StatusError:
    """Return 405: the path does not know this method."""
    message = "the server does not allow this method on the requested resource"
    return StatusError(HTTPStatus.METHOD_NOT_ALLOWED, "MethodNotAllowed", message, shows_details=True)


def unsupported_media_type(accepted: Iterable[str]) -> StatusError:
    """Return 415: the body has a form that cannot be read here."""
    message = f"the body of the request was in an unknown format - accepted media types include: {', '.join(accepted)}"
    return StatusError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", message)


def invalid(group: str, kind: str, name: str, errors: Iterable[FieldError]) -> StatusError:
    """Return 422: fields of the object are wrong; the text lists them as Kubernetes does.

    >>> str(invalid("apps", "Deployment", "web", [FieldError("spec.selector", "Required value")]))
    'Deployment.apps "web" is invalid: spec.selector: Required value'
    """
    found = tuple(errors)
    texts = list(dict.fromkeys(str(error) for error in found))
    listed = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    message = f'{resource_name(group, kind)} "{name}" is invalid' + (f": {listed}" if texts else "")
    causes = [error.cause for error in found]
    return StatusError(
        HTTPStatus.UNPROCESSABLE_ENTITY, "Invalid", message, group=group, kind=kind, name=name, causes=causes
    )


def too_many_requests(message: str, retry_after: int = 1, causes: Iterable[Cause] = ()) -> StatusError:
    """Return 429: later, please."""
    return StatusError(HTTPStatus.TOO_MANY_REQUESTS, "TooManyRequests", message, retry_after=retry_after, causes=causes)


def internal_error(why: str) -> StatusError:
    """Return 500 with the text that every internal error of an API server begins with.

    >>> str(internal_error("no luck"))
    'Internal error occurred: no luck'
    """
    message = f"Internal error occurred: {why}"
    return StatusError(HTTPStatus.INTERNAL_SERVER_ERROR, "InternalError", message, causes=[Cause("", why)])


def service_unavailable(why: str) -> StatusError:
    """Return 503: not now."""
    return StatusError(HTTPStatus.SERVICE_UNAVAILABLE, "ServiceUnavailable", why)


def server_timeout(why: str) -> StatusError:
    """Return 504: the server gave up waiting."""
    return StatusError(HTTPStatus.GATEWAY_TIMEOUT, "Timeout", f"Timeout: {why}")


def _read_text(body: JSONObject, key: str) -> str:
    found = body.get(key)
    return found if isinstance(found, str) else ""


def _number(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
