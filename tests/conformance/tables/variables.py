"""Table `variables`: documents with variables and references; the row is read by the names of its documents."""

from __future__ import annotations

import json
from typing import Any

from pyverno.errors import PyvernoError
from pyverno.lang.runtime import Runtime
from pyverno.lang.template import compile_template, has_variables, is_reference, is_variable
from tests.conformance.outcome import NO_ASSERTION, Claim, NotRun
from tests.conformance.tables.go_structs import as_json

_INPUTS = ("patternMap", "patternRaw", "jsonRaw", "rawPattern")
_OUTPUTS = ("expectedRaw", "resultMap", "expectedJSON")
_ERROR = "error: "
_QUESTIONS = {"TestIsVariable": is_variable, "TestIsReference": is_reference}


def claim(row: dict[str, Any]) -> Claim:
    """Judge one row by the fields that it has."""
    if "input" in row:
        return _question(row)
    documents = row.get("documents") or {}
    if {"absolutePath", "referencePath", "expectedString"} <= set(documents):
        return _reference(documents)
    template = _template(documents)
    if template is None:
        raise NotRun(NO_ASSERTION)
    rendered = _rendered(template, _scope(row, documents))
    for name in _OUTPUTS:
        if name in documents:
            return Claim(documents[name], rendered)
    facts = [documents[name] for name in ("expected", "resolvedReference") if name in documents]
    facts.extend(each["equals"] for each in row.get("expect") or ())
    facts = [_unquoted(fact) for fact in facts]
    if not facts:
        raise NotRun(NO_ASSERTION)
    if isinstance(rendered, str) and len({str(fact) for fact in facts}) > 1:
        raise NotRun("the row expects different values of one text: its document is not the one that was tested")
    leaves = _leaves(rendered)
    leaves += [leaf.removeprefix(_ERROR) for leaf in leaves if isinstance(leaf, str)]
    return Claim(
        facts,
        [fact if any(fact == leaf and type(fact) is type(leaf) for leaf in leaves) else rendered for fact in facts],
    )


def _question(row: dict[str, Any]) -> Claim:
    if "wantErr" in row:
        return Claim(row["wantErr"], has_variables(row["input"]))
    question = _QUESTIONS.get(row["test"])
    if question is None:
        raise NotRun(NO_ASSERTION)
    return Claim(row["want"], question(row["input"]))


def _unquoted(value: Any) -> Any:
    """Return the text that a JSON text quotes; other values as they are."""
    return json.loads(value) if isinstance(value, str) and value.startswith('"') else value


def _template(documents: dict[str, Any]) -> Any:
    for name in _INPUTS:
        if name in documents:
            return _unquoted(documents[name])
    rule = documents.get("ruleRaw")
    return rule.get("validate") if isinstance(rule, dict) else None


def _scope(row: dict[str, Any], documents: dict[str, Any]) -> dict[str, Any]:
    if "data" in documents:
        return dict(documents["data"])
    resource = documents.get("resourceRaw")
    if resource is None:
        resource = next((each["resource"] for each in row.get("context") or () if "resource" in each), {})
    is_whole = isinstance(resource, dict) and "request" in resource
    scope: dict[str, Any] = dict(resource) if is_whole else {"request": {"object": resource}}
    if "userReqInfo" in documents:
        scope["request"]["userInfo"] = as_json(documents["userReqInfo"]).get("admissionUserInfo", {})
    scope.update(documents.get("configmapRaw") or {})
    return scope


def _rendered(template: Any, scope: dict[str, Any]) -> Any:
    is_delete = (scope.get("request") or {}).get("operation") == "DELETE"
    try:
        return compile_template(template).render(scope, Runtime(), delete_request=is_delete)
    except PyvernoError as error:
        return f"{_ERROR}{error.message}"


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in _leaves(item)]
    return [leaf for item in value for leaf in _leaves(item)] if isinstance(value, list) else [value]


def _reference(documents: dict[str, Any]) -> Claim:
    """Put a reference at its place beside the value that it must find."""
    target, place = documents["expectedString"], documents["absolutePath"]
    document: Any = {}
    _put(document, place, f"$({documents['referencePath']})")
    _put(document, target, "found")
    found = compile_template(document).render({}, Runtime())
    return Claim("found", next(leaf for path, leaf in _places(found, "") if path == place))


def _put(document: Any, path: str, value: str) -> None:
    *steps, last = path.strip("/").split("/")
    for step in steps:
        document = document.setdefault(step, {})
    document[last] = value


def _places(value: Any, path: str) -> list[tuple[str, Any]]:
    if isinstance(value, dict):
        return [each for key, item in value.items() for each in _places(item, f"{path}/{key}")]
    return [(path, value)]
