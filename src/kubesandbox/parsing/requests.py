"""A request, read from its method, path and query: the verb, the resource, and the options.

Paths are split as an API server splits them (`RequestInfo`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kubesandbox.parsing.urls import values_of
from pyverno.kube.gvk import join_api_version
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.status import FieldError, StatusError, bad_request, invalid

__all__ = [
    "APPLY_PATCH",
    "JSON_PATCH",
    "MERGE_PATCH",
    "STRATEGIC_PATCH",
    "DeleteOptions",
    "ListOptions",
    "Target",
    "WriteOptions",
    "go_quote",
    "parse_target",
    "wants_watch",
]

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

_OBJECT_VERBS = {"GET": "get", "HEAD": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_COLLECTION_VERBS = {**_OBJECT_VERBS, "GET": "list", "HEAD": "list", "DELETE": "deletecollection"}
_NAMESPACE_PARTS = frozenset({"status", "finalize"})
_MAX_MANAGER = 128


def wants_watch(query: Mapping[str, str]) -> bool:
    """Return whether a query wants a watch."""
    return bool(_flag(query, "watch"))


@dataclass(frozen=True, slots=True)
class Target:
    """The target of a path; `group` and below are empty where it names no resource (`is_resource` is False).

    >>> parse_target("GET", "/apis/apps/v1/namespaces/x/deployments/web/scale")
    Target(verb='get', path='/apis/apps/v1/namespaces/x/deployments/web/scale', is_resource=True, group='apps', version='v1', namespace='x', plural='deployments', name='web', subresource='scale', rest='')
    """  # noqa: E501  # one value, as it prints

    verb: str
    path: str
    is_resource: bool = False
    group: str = ""
    version: str = ""
    namespace: str = ""
    plural: str = ""
    name: str = ""
    subresource: str = ""
    rest: str = ""
    """The path behind the subresource (`proxy/some/path`)."""

    @property
    def api_version(self) -> str:
        """The group and version of the path."""
        return join_api_version(self.group, self.version)


def parse_target(method: str, path: str, *, is_watch: bool = False) -> Target:
    """Read a method and an unescaped path; `is_watch` means that the query requests a watch, as only lists allow.

    >>> parse_target("GET", "/api/v1/pods", is_watch=True).verb, parse_target("GET", "/healthz").is_resource
    ('watch', False)
    >>> parse_target("PUT", "/api/v1/namespaces/x/finalize").subresource
    'finalize'
    """
    parts = path.strip("/").split("/")
    match parts:
        case ["api", version, _, *_]:
            group, rest = "", parts[2:]
        case ["apis", group, version, _, *_]:
            rest = parts[3:]
        case _:
            return Target(method.lower(), path)
    is_old_watch = rest[0] == "watch" and len(rest) > 1
    if is_old_watch:
        rest = rest[1:]
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and not (rest[2] in _NAMESPACE_PARTS and len(rest) == 3):
        namespace, rest = rest[1], rest[2:]
    elif rest[0] == "namespaces" and len(rest) > 1:
        namespace = rest[1]  # a Namespace object lives in itself, as far as permissions are concerned
    plural, name, subresource = (*rest[:3], "", "", "")[:3]
    verb = (_OBJECT_VERBS if name else _COLLECTION_VERBS).get(method, method.lower())
    if verb in ("list", "get") and (is_old_watch or (is_watch and verb == "list")):
        verb = "watch"
    return Target(verb, path, True, group, version, namespace, plural, name, subresource, "/".join(rest[3:]))


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """Options of a write: the content of CreateOptions, UpdateOptions and PatchOptions.

    `field_validation` is Strict, Warn or Ignore, or empty where the client left it to the server (which warns); `force`
    counts for server-side apply only.
    """

    dry_run: bool = False
    field_manager: str = ""
    field_validation: str = ""
    force: bool | None = None

    @property
    def validation(self) -> str:
        """The treatment of fields that do not exist."""
        return self.field_validation or "Warn"

    def to_json(self, kind: str) -> JSONObject:
        """Return the options as webhooks see them; `kind` is `CreateOptions` and the like.

        >>> WriteOptions(dry_run=True).to_json("CreateOptions")
        {'kind': 'CreateOptions', 'apiVersion': 'meta.k8s.io/v1', 'dryRun': ['All']}
        """
        body: JSONObject = {"kind": kind, "apiVersion": "meta.k8s.io/v1"}
        if self.dry_run:
            body["dryRun"] = ["All"]
        if self.field_manager:
            body["fieldManager"] = self.field_manager
        if self.field_validation:
            body["fieldValidation"] = self.field_validation
        return body

    @classmethod
    def from_query(cls, query: Mapping[str, str], kind: str, *, is_apply: bool = False) -> WriteOptions:
        """Read the options of a write; raises 422 for values that do not exist.

        >>> WriteOptions.from_query({"dryRun": "All", "fieldValidation": "Strict"}, "CreateOptions").dry_run
        True
        """
        errors: list[FieldError] = []
        force = _flag(query, "force")
        if kind == "PatchOptions":
            if not is_apply and force is not None:
                errors.append(FieldError("force", "Forbidden", "may not be specified for non-apply patch"))
            if is_apply and not query.get("fieldManager"):
                errors.append(FieldError("fieldManager", "Required value", "is required for apply patch"))
        manager = query.get("fieldManager", "")
        errors.extend(_manager_problems(manager))
        dry_run = values_of(query, "dryRun")
        errors.extend(_dry_run_problems(dry_run))
        validation = query.get("fieldValidation", "")
        if validation not in ("", "Ignore", "Warn", "Strict"):
            supported = 'supported values: "", "Ignore", "Strict", "Warn"'
            errors.append(FieldError("fieldValidation", "Unsupported value", supported, go_quote(validation)))
        if errors:
            raise invalid("meta.k8s.io", kind, "", errors)
        return cls(bool(dry_run), manager, validation, force if kind == "PatchOptions" else None)


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """Options of a deletion; `grace` is in seconds, None leaves it to the kind of the object."""

    dry_run: bool = False
    grace: int | None = None
    propagation: str = ""
    orphan: bool | None = None
    uid: str = ""
    resource_version: str = ""

    def to_json(self) -> JSONObject:
        """Return the options as webhooks see them."""
        body: JSONObject = {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1"}
        if self.grace is not None:
            body["gracePeriodSeconds"] = self.grace
        preconditions = {
            key: text for key, text in (("uid", self.uid), ("resourceVersion", self.resource_version)) if text
        }
        if preconditions:
            body["preconditions"] = preconditions
        if self.orphan is not None:
            body["orphanDependents"] = self.orphan
        if self.propagation:
            body["propagationPolicy"] = self.propagation
        if self.dry_run:
            body["dryRun"] = ["All"]
        return body

    @classmethod
    def from_json(cls, body: JSONObject) -> DeleteOptions:
        """Read the body of a DELETE; raises 400 or 422 for what cannot be."""
        _check_types(body)
        preconditions = body.get("preconditions") or {}
        grace, orphan = body.get("gracePeriodSeconds"), body.get("orphanDependents")
        propagation, dry_run = body.get("propagationPolicy") or "", body.get("dryRun") or []
        errors: list[FieldError] = []
        if propagation and orphan is not None:
            why = "orphanDependents and deletionPropagation cannot be both set"
            errors.append(FieldError("propagationPolicy", "Invalid value", why, go_quote(propagation)))
        if propagation not in ("", "Foreground", "Background", "Orphan"):
            supported = 'supported values: "Foreground", "Background", "Orphan", "nil"'
            errors.append(FieldError("propagationPolicy", "Unsupported value", supported, go_quote(propagation)))
        errors.extend(_dry_run_problems(dry_run))
        if errors:
            raise invalid("meta.k8s.io", "DeleteOptions", "", errors)
        version, uid = preconditions.get("resourceVersion") or "", preconditions.get("uid") or ""
        return cls(bool(dry_run), grace, propagation, orphan, str(uid), str(version))

    @classmethod
    def from_query(cls, query: Mapping[str, str]) -> DeleteOptions:
        """Read the options of a DELETE that has no body."""
        body: JSONObject = {key: query[key] for key in ("propagationPolicy",) if key in query}
        if "gracePeriodSeconds" in query:
            body["gracePeriodSeconds"] = _integer(query, "gracePeriodSeconds")
        if "dryRun" in query:
            body["dryRun"] = values_of(query, "dryRun")
        if "orphanDependents" in query:
            body["orphanDependents"] = _flag(query, "orphanDependents")
        return cls.from_json(body)


@dataclass(frozen=True, slots=True)
class ListOptions:
    """Options of lists and watches: selected objects, first version, how many at once (`timeout` in seconds)."""

    label_selector: str = ""
    field_selector: str = ""
    resource_version: str = ""
    match: str = ""
    limit: int = 0
    continue_token: str = ""
    timeout: int | None = None
    bookmarks: bool = False
    initial_events: bool | None = None

    @classmethod
    def from_query(cls, query: Mapping[str, str], *, is_watch: bool) -> ListOptions:
        """Read the options of a list or watch; raises 400 or 422 for values that cannot be.

        >>> ListOptions.from_query({"limit": "500", "labelSelector": "a=b"}, is_watch=False).limit
        500
        """
        found = cls(
            label_selector=query.get("labelSelector", ""),
            field_selector=query.get("fieldSelector", ""),
            resource_version=query.get("resourceVersion", ""),
            match=query.get("resourceVersionMatch", ""),
            limit=_integer(query, "limit"),
            continue_token=query.get("continue", ""),
            timeout=_integer(query, "timeoutSeconds") if "timeoutSeconds" in query else None,
            bookmarks=bool(_flag(query, "allowWatchBookmarks")),
            initial_events=_flag(query, "sendInitialEvents"),
        )
        errors = [*(found._watch_problems() if is_watch else found._list_problems())]
        if errors:
            raise invalid("meta.k8s.io", "ListOptions", "", errors)
        return found

    def _list_problems(self) -> list[FieldError]:
        field = "resourceVersionMatch"
        if self.initial_events is not None:
            return [FieldError("sendInitialEvents", "Forbidden", "sendInitialEvents is forbidden for list")]
        if not self.match:
            return []
        errors: list[FieldError] = []
        if not self.resource_version:
            errors.append(FieldError(field, "Forbidden", f"{field} is forbidden unless resourceVersion is provided"))
        if self.continue_token:
            errors.append(FieldError(field, "Forbidden", f"{field} is forbidden when continue is provided"))
        if self.match not in ("Exact", "NotOlderThan"):
            supported = 'supported values: "Exact", "NotOlderThan", ""'
            errors.append(FieldError(field, "Unsupported value", supported, go_quote(self.match)))
        if self.match == "Exact" and self.resource_version == "0":
            errors.append(FieldError(field, "Forbidden", f'{field} "exact" is forbidden for resourceVersion "0"'))
        return errors

    def _watch_problems(self) -> list[FieldError]:
        field = "resourceVersionMatch"
        errors: list[FieldError] = []
        if self.initial_events is None:
            if self.match:
                why = f"{field} is forbidden for watch unless sendInitialEvents is provided"
                errors.append(FieldError(field, "Forbidden", why))
        elif self.match != "NotOlderThan":
            why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
            errors.append(FieldError(field, "Forbidden", why))
        if self.match not in ("", "NotOlderThan"):
            supported = 'supported values: "NotOlderThan"'
            errors.append(FieldError(field, "Unsupported value", supported, go_quote(self.match)))
        if self.continue_token:
            errors.append(FieldError(field, "Forbidden", f"{field} is forbidden when continue is provided"))
        return errors


def go_quote(text: str) -> str:
    """Write a text as Go's `%q` does for the texts that are in requests.

    >>> go_quote('a"b')
    '"a\\\\"b"'
    """
    return '"' + "".join(_GO_ESCAPES.get(letter) or _go_letter(letter) for letter in text) + '"'


_GO_ESCAPES = {
    "\\": "\\\\",
    '"': '\\"',
    **dict(zip("\a\b\f\n\r\t\v", ("\\" + letter for letter in "abfnrtv"), strict=True)),
}


def _go_letter(letter: str) -> str:
    if letter.isprintable():
        return letter
    code = ord(letter)
    return f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _integer(query: Mapping[str, str], key: str) -> int:
    text = query.get(key)
    if text is None:
        return 0
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit()):
        raise bad_request(f"strconv.ParseInt: parsing {go_quote(text)}: invalid syntax")
    number = int(text) if len(digits) < 20 else 2**64
    if not -(2**63) <= number < 2**63:
        raise bad_request(f"strconv.ParseInt: parsing {go_quote(text)}: value out of range")
    return number


def _flag(query: Mapping[str, str], key: str) -> bool | None:
    # apimachinery: Convert_Slice_string_To_bool takes everything but these as true
    if key not in query:
        return None
    return query[key].lower() not in ("false", "0")


def _manager_problems(manager: str) -> list[FieldError]:
    if len(manager) > _MAX_MANAGER:
        return [FieldError("fieldManager", "Too long", f"may not be more than {_MAX_MANAGER} bytes")]
    return [
        FieldError(
            "fieldManager",
            "Invalid value",
            f"invalid character U+{ord(letter):04X} (at position {place})",
            go_quote(manager),
        )
        for place, letter in enumerate(manager)
        if not letter.isprintable()
    ]


def _dry_run_problems(values: Sequence[JSON]) -> list[FieldError]:
    if any(value != "All" for value in values):
        shown = "[" + ",".join(go_quote(str(value)) for value in values) + "]"
        return [FieldError("dryRun", "Unsupported value", 'supported values: "All"', shown)]
    return []


_DELETE_FIELDS: Mapping[str, tuple[type, str]] = {
    "gracePeriodSeconds": (int, "int64"),
    "preconditions": (dict, "v1.Preconditions"),
    "orphanDependents": (bool, "bool"),
    "propagationPolicy": (str, "v1.DeletionPropagation"),
    "dryRun": (list, "[]string"),
}
_GO_KINDS: Mapping[type, str] = {dict: "object", str: "string", bool: "bool", list: "array"}


def _check_types(body: JSONObject) -> None:
    """Raise 400 for fields of DeleteOptions that are of another type."""
    for field, (kind, named) in _DELETE_FIELDS.items():
        value = body.get(field)
        if value is not None and type(value) is not kind:
            found = _GO_KINDS.get(type(value)) or ("number" if type(value) is int else f"number {value}")
            raise bad_request(
                f"json: cannot unmarshal {found} into Go struct field DeleteOptions.{field} of type {named}"
            )


def unknown_version(text: str, *, is_watch: bool = False) -> StatusError:
    """Return the error of a resourceVersion that is no number; of a watch upstream makes an error of its own."""
    is_number = text.isascii() and text.isdigit()
    why = f"strconv.ParseUint: parsing {go_quote(text)}: {'value out of range' if is_number else 'invalid syntax'}"
    message = f"resourceVersion: Invalid value: {go_quote(text)}: {why}"
    return StatusError(500, "", message) if is_watch else bad_request(f"invalid resource version: {message}")
