"""kyverno-test.yaml: test suites of the command line, decoded strictly.

Field names match in any case; an unknown field is an error with its location.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.yaml.documents import Document
from pyverno.kube.yaml.fieldpath import Path
from pyverno.offline.clifiles import VALUE_SHAPE, decode_file, folded
from pyverno.offline.values import Values
from pyverno.policy.schema import Cursor, Field, Record, boolean, choice, free, integer, list_of, map_of, text
from pyverno.value import dataclass, field

__all__ = ["ApiCallResponse", "ExpectedResult", "GlobalEntry", "Outcome", "ResourceSpec", "TestFile", "read_test_file"]


class Outcome(StrEnum):
    """The result that a row expects."""

    PASS = "pass"  # noqa: S105 - a status, not a password
    FAIL = "fail"
    SKIP = "skip"
    WARN = "warn"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class ResourceSpec:
    """One resource of a row, named in full."""

    group: str = ""
    version: str = ""
    kind: str = ""
    namespace: str = ""
    subresource: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class ExpectedResult:
    """One entry of `results`: policy and rule, its resources (none = all) and what is expected."""

    policy: str
    result: Outcome
    rule: str = ""
    resources: tuple[str, ...] = ()
    resource_specs: tuple[ResourceSpec, ...] = ()
    kind: str = ""
    patched_resources: str = ""
    generated_resource: str = ""
    generated_resources: tuple[str, ...] = ()
    clone_source_resource: str = ""
    operation: str = ""
    is_deleting_policy: bool = False
    fail_on_missing_resources: bool = False
    path: Path = ()

    @property
    def object_files(self) -> tuple[str, ...]:
        """The names of the files of expected objects."""
        found = (self.patched_resources, self.generated_resource, *self.generated_resources)
        return tuple(name for name in found if name)

    @property
    def policy_name(self) -> str:
        """The name of the policy without its namespace, which is not looked at."""
        return self.policy.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class ApiCallResponse:
    """A recorded answer for a URL or an API path."""

    target: str
    body: JSON
    method: str = ""
    status: int = 200


@dataclass(frozen=True, slots=True)
class GlobalEntry:
    """A mocked GlobalContextEntry."""

    name: str
    data: JSONObject | None = None
    resources: tuple[JSONObject, ...] | None = None
    resource_files: tuple[str, ...] | None = None
    field_path: str = ""
    projections: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class TestFile:
    """A test document; paths are relative to the folder of the file."""

    __test__ = False

    document: Document
    name: str = ""
    policies: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    target_resources: tuple[str, ...] = ()
    param_resources: tuple[str, ...] = ()
    json_payloads: tuple[str, ...] = ()
    http_payloads: tuple[str, ...] = ()
    envoy_payloads: tuple[str, ...] = ()
    user_info: str = ""
    variables: str = ""
    context: str = ""
    values: Values | None = None
    exceptions: tuple[str, ...] = ()
    cluster_resources: tuple[str, ...] = ()
    api_call_responses: tuple[ApiCallResponse, ...] = ()
    global_entries: tuple[GlobalEntry, ...] = ()
    results: tuple[ExpectedResult, ...] = field(default_factory=tuple)


def _expected(values: dict[str, Any], cursor: Cursor) -> None:
    if not values.get("policy"):
        cursor.error("missing-field", "required field `policy` is missing", key=True)


_IGNORED = (
    "is_validating_admission_policy",
    "is_mutating_admission_policy",
    "is_validating_policy",
    "is_mutating_policy",
    "is_generating_policy",
    "is_image_validating_policy",
    "status",
)


def _expected_result(*, path: Path, **values: Any) -> ExpectedResult:
    status = values.pop("status", None)
    known = {key: value for key, value in values.items() if key not in _IGNORED}
    if "result" not in known:
        known["result"] = status
    patched = known.pop("patched_resource", "")
    if patched and not known.get("patched_resources"):
        known["patched_resources"] = patched
    resource = known.pop("resource", "")
    if resource and not known.get("resources"):
        known["resources"] = (resource,)
    namespace = known.pop("namespace", "")
    if namespace:  # of the schema before `ns/name`
        known["resources"] = tuple(
            name if "/" in name else f"{namespace}/{name}" for name in known.get("resources") or ()
        )
    return ExpectedResult(path=path, **known)


_RESOURCE_SPEC = folded(
    Record(
        ResourceSpec, *(Field(name, text) for name in ("group", "version", "kind", "namespace", "subresource", "name"))
    )
)

_RESULT = folded(
    Record(
        _expected_result,
        Field("policy", text, required=True),
        Field("rule", text),
        Field("result", choice(Outcome)),
        Field("status", choice(Outcome)),
        Field("resources", list_of(text)),
        Field("resource", text),
        Field("namespace", text),
        Field("resource_specs", list_of(_RESOURCE_SPEC)),
        Field("kind", text),
        Field("patched_resources", text),
        Field("patched_resource", text),
        Field("generated_resource", text),
        Field("generated_resources", list_of(text)),
        Field("clone_source_resource", text),
        Field("operation", text),
        Field("is_deleting_policy", boolean),
        Field("fail_on_missing_resources", boolean),
        *(Field(name, boolean) for name in _IGNORED if name != "status"),
        check=_expected,
        extras=("path",),
    )
)


def _response(
    url: str = "", url_path: str = "", method: str = "", response: Mapping[str, Any] | None = None
) -> ApiCallResponse:
    answer = response or {}
    return ApiCallResponse(url or url_path, answer.get("body"), method, answer.get("status", 200))


def _is_web_address(text: str) -> bool:
    scheme, separator, rest = text.partition("://")
    return scheme in ("http", "https") and bool(separator) and bool(rest.partition("/")[0])


def _check_response(values: dict[str, Any], cursor: Cursor) -> None:
    if bool(values.get("url")) == bool(values.get("url_path")):
        cursor.error("api-call-response", "exactly one of `url` and `urlPath` must be set")
    elif values.get("url") and not _is_web_address(values["url"]):
        cursor.child("url").error("api-call-response", f"`{values['url']}` must be an http or https address")
    elif values.get("url_path") and not values["url_path"].startswith("/"):
        cursor.child("urlPath").error("api-call-response", f"`{values['url_path']}` must start with /")
    if values.get("method", "") not in ("", "GET", "POST"):
        cursor.error("api-call-response", f"method `{values['method']}` must be GET or POST")
    status = (values.get("response") or {}).get("status", 200)
    if not 100 <= status <= 599:
        cursor.error("api-call-response", f"statusCode `{status}` must be between 100 and 599")
    if not isinstance((values.get("response") or {}).get("body"), dict | list):
        cursor.error("api-call-response", "the response needs a body")


_RESPONSE = folded(
    Record(
        _response,
        Field("url", text),
        Field("url_path", text),
        Field("method", text),
        Field(
            "response",
            folded(Record(dict, Field("status", integer, json="statusCode"), Field("body", free))),
        ),
        check=_check_response,
    )
)


def _global_entry(**values: Any) -> GlobalEntry:
    projections = tuple((item["name"], item["path"]) for item in values.pop("projections", ()))
    return GlobalEntry(projections=projections, **values)


def _check_global_entry(values: dict[str, Any], cursor: Cursor) -> None:
    sources = [name for name in ("data", "resources", "resource_files") if name in values]
    if len(sources) != 1:
        cursor.error("global-context-entry", "exactly one of `data`, `resources` and `resourceFiles` must be set")


_GLOBAL_ENTRY = folded(
    Record(
        _global_entry,
        Field("name", text, required=True),
        Field("data", map_of(free)),
        Field("resources", list_of(map_of(free))),
        Field("resource_files", list_of(text)),
        Field("field_path", text),
        Field(
            "projections",
            list_of(folded(Record(dict, Field("name", text, required=True), Field("path", text, required=True)))),
        ),
        check=_check_global_entry,
    )
)


def _test_file(*, document: Document, metadata: JSON = None, json_payload: str = "", **values: Any) -> TestFile:
    values.pop("api_version", None)
    values.pop("kind", None)
    name = metadata.get("name") if isinstance(metadata, dict) else ""
    if json_payload:
        values["json_payloads"] = (json_payload, *values.get("json_payloads", ()))
    for key in ("policies", "resources", "json_payloads"):
        if key in values:
            values[key] = tuple(dict.fromkeys(values[key]))
    return TestFile(document, name=name if isinstance(name, str) else "", **values)


def _check_test(values: dict[str, Any], cursor: Cursor) -> None:
    answers = Counter((each.method, each.target) for each in values.get("api_call_responses", ()))
    entries = Counter(each.name for each in values.get("global_entries", ()))
    for (method, target), count in answers.items():
        if count > 1:
            cursor.child("apiCallResponses").error("api-call-response", f"`{method}:{target}` is answered twice")
    for name, count in entries.items():
        if count > 1:
            cursor.child("globalContextEntries").error("global-context-entry", f"entry `{name}` is given twice")


TEST_FILE = folded(
    Record(
        _test_file,
        Field("api_version", text),
        Field("kind", text),
        Field("metadata", free),
        Field("policies", list_of(text)),
        Field("resources", list_of(text)),
        Field("target_resources", list_of(text)),
        Field("param_resources", list_of(text)),
        Field("json_payload", text, json="jsonPayload"),
        Field("json_payloads", list_of(text)),
        Field("http_payloads", list_of(text)),
        Field("envoy_payloads", list_of(text)),
        Field("user_info", text, json="userinfo"),
        Field("variables", text),
        Field("context", text),
        Field("values", VALUE_SHAPE),
        Field("exceptions", list_of(text)),
        Field("cluster_resources", list_of(text)),
        Field("api_call_responses", list_of(_RESPONSE)),
        Field("global_entries", list_of(_GLOBAL_ENTRY), json="globalContextEntries"),
        Field("results", list_of(_RESULT)),
        check=_check_test,
        extras=("document",),
    )
)


def read_test_file(document: Document) -> TestFile:
    """Decode one Test document; raises UsageError or PolicyError with file, line and column."""
    found: TestFile = decode_file(document, "Test", TEST_FILE)
    return found
