"""Field selectors: `metadata.name=web,status.phase!=Running`, for the few fields that each type can be selected by."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import orjson

from kubesandbox.types.resources import ResourceType
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.status import bad_request
from pyverno.value import dataclass

__all__ = ["compile_field_selector"]

_Read = Callable[[JSONObject], str]

_OPERATORS = ("!=", "==", "=")
"""In the order in which they are looked for at each place of a term."""


def compile_field_selector(
    text: str, type: ResourceType, selectable: tuple[str, ...] = ()
) -> Callable[[JSONObject], bool]:
    """Return a function that decides whether an object is selected; an empty text selects everything.

    `selectable` are the further fields of a custom resource (`spec.color`). Raises StatusError 400 for a text that is
    no selector and for a field that the type cannot be selected by.

    >>> from kubesandbox.types.resources import builtin_table
    >>> pods = builtin_table("1.35").find("", "v1", "pods")
    >>> is_running = compile_field_selector("status.phase=Running", pods)
    >>> is_running({"status": {"phase": "Running"}}), is_running({"status": {"phase": "Pending"}})
    (True, False)
    """
    tests = [_test(term, type, selectable) for term in _terms(text)]
    return lambda body: all(test(body) for test in tests)


@dataclass(frozen=True, slots=True)
class _Term:
    field: str
    is_equal: bool
    value: str


def _test(term: _Term, type: ResourceType, selectable: tuple[str, ...]) -> Callable[[JSONObject], bool]:
    read = _reader(term.field, type, selectable)
    return lambda body: (read(body) == term.value) is term.is_equal


def _reader(field: str, type: ResourceType, selectable: tuple[str, ...]) -> _Read:
    own = _FIELDS.get((type.group, type.plural))
    known = {**_METADATA, **(own or {}), **{name.removeprefix("."): _at(name) for name in selectable}}
    if not type.namespaced and (own is not None or type.is_custom):
        del known["metadata.namespace"]
    read = known.get(field)
    if read is not None:
        return read
    if (type.group, type.plural) == ("batch", "jobs"):
        raise bad_request(f'field label "{field}" not supported for {type.kind}')
    if type.group == "resource.k8s.io" and own is not None:
        raise bad_request(f"field label not supported for {type.api_version}, Kind={type.kind}: {field}")
    if own is not None or type.is_custom:
        raise bad_request(f"field label not supported: {field}")
    raise bad_request(
        f'{orjson.dumps(field).decode()} is not a known field selector: only "metadata.name", "metadata.namespace"'
    )


def _terms(text: str) -> Iterator[_Term]:
    for part in _split(text):
        if part:
            yield _term(part, text)


def _split(text: str) -> Iterator[str]:
    """Cut at commas that no backslash escapes; the backslashes stay."""
    start = place = 0
    while place < len(text):
        if text[place] == "\\":
            place += 1
        elif text[place] == ",":
            yield text[start:place]
            start = place + 1
        place += 1
    yield text[start:]


def _term(part: str, text: str) -> _Term:
    place = 0
    while place < len(part):
        if part[place] == "\\":
            place += 2
            continue
        operator = next((item for item in _OPERATORS if part.startswith(item, place)), "")
        if operator:
            return _Term(part[:place], operator != "!=", _unescape(part[place + len(operator) :], text))
        place += 1
    raise bad_request(f"invalid selector: '{text}'; can't understand '{part}'")


def _unescape(value: str, text: str) -> str:
    out: list[str] = []
    place = 0
    while place < len(value):
        character = value[place]
        if character == "\\":
            place += 1
            escaped = value[place : place + 1]
            if escaped not in ("\\", ",", "="):
                raise bad_request(f"invalid field selector: invalid escape sequence: \\{escaped}")
            out.append(escaped)
        elif character in ",=":
            raise bad_request(f"invalid field selector: unescaped character in value: {ord(character)}")
        else:
            out.append(character)
        place += 1
    return "".join(out)


def _at(path: str) -> _Read:
    """Return the reader of a field; missing fields read as the empty string."""
    steps = path.removeprefix(".").split(".")

    def read(body: JSONObject) -> str:
        value: JSON = body
        for step in steps:
            value = value.get(step) if isinstance(value, dict) else None
        return _format_value(value)

    return read


def _format_value(value: JSON) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, (str, int, float)) else ""


def _bool_at(path: str) -> _Read:
    read = _at(path)
    return lambda body: read(body) or "false"


def _number_at(path: str) -> _Read:
    read = _at(path)
    return lambda body: read(body) or "0"


def _pod_ips(body: JSONObject) -> str:
    addresses = (body.get("status") or {}).get("podIPs") or ()
    return ",".join(item.get("ip", "") for item in addresses)


def _event_fields(subject: str, controller: str) -> dict[str, _Read]:
    """Return the fields of an Event; its two groups call some of them by other names, and read either's objects."""
    parts = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")

    def either(*paths: str) -> _Read:
        readers = [_at(path) for path in paths]
        return lambda body: next((found for read in readers if (found := read(body))), "")

    fields = {f"{subject}.{part}": either(f"involvedObject.{part}", f"regarding.{part}") for part in parts}
    fields[controller] = either("reportingComponent", "reportingController")
    if controller == "reportingComponent":
        fields["source"] = either(
            "source.component", "deprecatedSource.component", "reportingComponent", "reportingController"
        )
    return {**fields, "reason": _at("reason"), "type": _at("type")}


_METADATA: Mapping[str, _Read] = {
    "metadata.name": _at("metadata.name"),
    "metadata.namespace": _at("metadata.namespace"),
}

_FIELDS: Mapping[tuple[str, str], Mapping[str, _Read]] = {
    ("", "events"): _event_fields("involvedObject", "reportingComponent"),
    ("", "namespaces"): {"status.phase": _at("status.phase")},
    ("", "nodes"): {"spec.unschedulable": _bool_at("spec.unschedulable")},
    ("", "pods"): {
        "spec.nodeName": _at("spec.nodeName"),
        "spec.restartPolicy": _at("spec.restartPolicy"),
        "spec.schedulerName": _at("spec.schedulerName"),
        "spec.serviceAccountName": _at("spec.serviceAccountName"),
        "spec.hostNetwork": _bool_at("spec.hostNetwork"),
        "status.phase": _at("status.phase"),
        "status.podIP": _at("status.podIP"),
        "status.podIPs": _pod_ips,
        "status.nominatedNodeName": _at("status.nominatedNodeName"),
    },
    ("", "replicationcontrollers"): {"status.replicas": _number_at("status.replicas")},
    ("", "secrets"): {"type": _at("type")},
    ("", "services"): {"spec.clusterIP": _at("spec.clusterIP"), "spec.type": _at("spec.type")},
    ("batch", "jobs"): {"status.successful": _number_at("status.succeeded")},
    ("certificates.k8s.io", "certificatesigningrequests"): {"spec.signerName": _at("spec.signerName")},
    ("events.k8s.io", "events"): _event_fields("regarding", "reportingController"),
    ("resource.k8s.io", "resourceslices"): {"spec.nodeName": _at("spec.nodeName"), "spec.driver": _at("spec.driver")},
}
"""Fields by which types can be selected, beside name and namespace."""
