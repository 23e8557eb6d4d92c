"""Findings as SARIF 2.1.0, the format of code scanning.

Only problems are results. Each policy rule is a SARIF rule, which its copies for pod controllers share. Unreadable
input is a notification of the tool.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final
from urllib.parse import quote

from pyverno.errors import Location
from pyverno.kube.json import JSONObject
from pyverno.report.finding import Finding
from pyverno.report.formats.listing import indented, json_list
from pyverno.report.packed import packed
from pyverno.report.problem import Problem
from pyverno.report.rendered import Lost, no_bug, rendered
from pyverno.sinks.markup import sarif_text
from pyverno.version import __version__

__all__ = ["sarif"]

_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS: Final = {"critical": "error", "high": "error", "medium": "warning", "low": "note", "info": "note"}
_SECURITY_SEVERITY: Final = {"critical": "9.5", "high": "8.0", "medium": "5.0", "low": "3.0", "info": "1.0"}


def sarif(findings: Iterable[Finding], problems: Sequence[Problem] = (), lost: Lost = no_bug) -> Iterator[str]:
    """Yield one SARIF log.

    >>> '"version": "2.1.0"' in "".join(sarif([]))
    True
    """
    rules: dict[str, JSONObject] = {}
    numbers: dict[str, int] = {}
    results = packed(rendered(findings, lambda each: _finding(each, rules, numbers), lost))
    driver = {"name": "pyverno", "semanticVersion": __version__, "rules": list(rules.values())}
    invocation: JSONObject = {"executionSuccessful": not problems}
    if problems:
        invocation["toolExecutionNotifications"] = [_notification(each) for each in problems]
    yield f'{{\n  "$schema": "{_SCHEMA}",\n  "runs": [\n    {{\n      "columnKind": "unicodeCodePoints",\n'
    yield f'      "invocations": {indented([invocation], 3)},\n      "results": '
    yield from json_list(results, 3)
    yield f',\n      "tool": {indented({"driver": driver}, 3)}\n    }}\n  ],\n  "version": "2.1.0"\n}}\n'


def _finding(each: Finding, rules: dict[str, JSONObject], numbers: dict[str, int]) -> str:
    if not each.is_problem:
        return ""
    name = each.rule_id
    if name not in rules:
        rules[name] = _rule(each)
        numbers[name] = len(numbers)
    return indented(_result(each, numbers[name]), 4)


def _rule(each: Finding) -> JSONObject:
    rule: JSONObject = {
        "id": each.rule_id,
        "shortDescription": {"text": sarif_text(each.title or each.rule_id)},
        "fullDescription": {"text": sarif_text(each.description or each.title or each.rule_id)},
        "help": {"text": sarif_text(_help(each))},
        "defaultConfiguration": {"level": _LEVELS.get(each.severity, "error")},
    }
    properties: JSONObject = {}
    if each.category:
        properties["tags"] = [each.category]
    if each.severity in _SECURITY_SEVERITY:
        properties["security-severity"] = _SECURITY_SEVERITY[each.severity]
    if properties:
        rule["properties"] = properties
    return rule


def _help(each: Finding) -> str:
    """Return the help text of an alert: the purpose of the policy, and the location of the rule."""
    parts = [each.description or each.title or f"Rule {each.rule_id}."]
    if each.category:
        parts.append(f"Category: {each.category}.")
    if each.rule_location.file:
        parts.append(f"The rule is at {each.rule_location}.")
    return "\n\n".join(parts)


def _level(each: Finding) -> str:
    match each.status:
        case "warn":
            return "warning"
        case "fail":
            return _LEVELS.get(each.severity, "error")
    return "error"


def _notification(problem: Problem) -> JSONObject:
    notification: JSONObject = {
        "descriptor": {"id": problem.code},
        "level": "error",
        "message": {"text": sarif_text(problem.message)},
    }
    if problem.location.file:
        notification["locations"] = [_physical(problem.location)]
    return notification


def _result(each: Finding, index: int) -> JSONObject:
    result: JSONObject = {
        "ruleId": each.rule_id,
        "ruleIndex": index,
        "level": _level(each),
        "message": {"text": sarif_text(f"{each.resource}: {each.message or 'validation failed'}")},
        "locations": [_location(each.location, str(each.resource))],
    }
    if each.rule_location.file:
        result["relatedLocations"] = [{**_physical(each.rule_location), "message": {"text": "the rule"}}]
    return result


def _location(location: Location, name: str) -> JSONObject:
    physical = _physical(location) if location.file else {}
    return {**physical, "logicalLocations": [{"fullyQualifiedName": name}]}


def _physical(location: Location) -> JSONObject:
    where: JSONObject = {"artifactLocation": {"uri": _uri(location.file)}}
    if location.line:
        where["region"] = {"startLine": location.line, "startColumn": max(location.column, 1)}
    return {"physicalLocation": where}


def _uri(file: str) -> str:
    if file == "-":
        return "stdin"
    if file.startswith(("http://", "https://")):
        return file
    name = file.removeprefix("./").replace("\\", "/")
    return quote(name, safe="/", errors="surrogatepass")  # guard: names that are no text have an address
