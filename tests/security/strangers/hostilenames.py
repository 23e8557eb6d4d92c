"""Names that somebody chose for a log, a page or a folder, in every place where a document has one; and readers.

Each reader of an output is as strict as the program that it stands for: a terminal, a runner of a CI system, a
renderer of Markdown or HTML, a parser of XML, a spreadsheet.
"""

from __future__ import annotations

import csv
import io
import json
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree

import yaml
from markdown_it import MarkdownIt

__all__ = ["HOSTILE", "READERS", "commands_of_runners", "controls", "plant"]

HOSTILE: Final[Mapping[str, str]] = {
    "github": "a\n::error file=x,line=1::pwned\n  ::add-mask::b",
    "github-old": "::set-output name=a::b ##[error]c",
    "azure": "a\r\n##vso[task.complete result=Succeeded;]done",
    "teamcity": "a\n##teamcity[buildStatus status='SUCCESS' text='|n']",
    "terminal": "\x1b[2J\x1b]0;owned\x07\x1b[32mpass\x1b[0m\r",
    "controls": "a\x00\x07\x08\x0b\x0c\x7f\x9b31m\x85b\u2028::error::c\u2029",
    "invisible": "\u202egnp\u2066a\u2069\u200b\u200e\u2060\ufeff\u00adb\U000e0041",
    "markdown": "[a](https://evil.example)![p](https://evil.example/p.png) <https://evil.example> www.evil.example",
    "mentions": "@everyone #1 !2 `c` **b** | d | $x$ javascript:alert(1) [r]\n\n[r]: https://evil.example\n# h",
    "html": "<img src=x onerror=alert(1)><script>alert(1)</script>]]> --> \"' &lt;b&gt; </td></title>",
    "formula": "=cmd|' /C calc'!A0",
    "path": "../../../../escaped/.CON\\..\\x",
}
"""Names by what they attack."""

_ALLOWED: Final = frozenset("\n\t")
_SEPARATORS: Final = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))


def controls(text: str, form: str = "") -> set[str]:
    """Return the characters of a text that a terminal obeys or hides; lines of CSV end with both characters."""
    shown = text.replace("\r\n", "\n") if form == "csv" else text
    return {each for each in shown if unicodedata.category(each) in _SEPARATORS and each not in _ALLOWED}


_ACTIONS: Final = re.compile(r"\s*::(?P<name>.*?)::", re.DOTALL)
_LOGGING: Final = re.compile(r"##(?:\[|vso\[|teamcity\[)", re.IGNORECASE)
_OWN: Final = {
    "github": re.compile(r"::(?:error|warning) (?:(?:file|title|line|col)=[^,:]*,?)+::.*"),
    "azure": re.compile(r"##vso\[task\.logissue [^\]]*\].*"),
    "teamcity": re.compile(r"##teamcity\[(?:inspection|inspectionType|buildProblem)(?: \w+='(?:[^|'\[\]]|\|.)*')+\]"),
}


def commands_of_runners(text: str, form: str = "") -> list[str]:
    """Return the lines that a runner takes for a command; in a format of commands those that are not ours."""
    found = []
    for line in text.split("\n"):
        own = _OWN.get(form)
        rest = line
        if own is not None and own.fullmatch(line):
            # whatever else a line of ours holds, no other runner may find a command in it
            rest = line[2:].replace("::", "")
        if _ACTIONS.match(rest) or _LOGGING.search(rest):
            found.append(line)
    return found


# ---------------------------------------------------------------------------------------------------------- readers


class _Elements(HTMLParser):
    """The elements of a page, and the attributes that load or run something."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.add(tag)
        self.found |= {f"{tag} {name}" for name, _ in attrs if name.startswith("on") or name in ("src", "href")}


_OURS: Final = frozenset(
    (
        *(
            "html",
            "head",
            "meta",
            "title",
            "style",
            "body",
            "main",
            "h1",
            "h2",
            "h3",
            "p",
            "strong",
            "ul",
            "li",
            "span",
        ),
        *("table", "thead", "tbody", "tr", "th", "td", "svg", "rect", "code", "pre", "details", "summary"),
    )
)


def _html(text: str) -> Iterator[str]:
    reader = _Elements()
    reader.feed(text)
    yield from (f"element {each}" for each in sorted(reader.found - _OURS))


def _markdown(text: str) -> Iterator[str]:
    reader = MarkdownIt("commonmark", {"html": True}).enable("table")
    for token in reader.parse(text):
        for each in (token, *(token.children or ())):
            if each.type in ("link_open", "image", "html_block", "heading_open", "em_open", "strong_open"):
                own = each.type == "heading_open" or (each.type == "strong_open" and text.startswith("**"))
                if not own or "h\n" == each.content:
                    yield f"markdown {each.type}"
            if each.type == "html_inline" and each.content not in ("<br>", "<span>", "</span>"):
                yield f"markdown {each.content}"
            if each.type == "text" and re.search(r"@everyone|#1\b|!2\b", each.content):
                yield f"mention {each.content}"
    for link in re.findall(r"(?i)https?://evil|\bwww\.evil", text):
        yield f"link {link}"


def _xml(text: str) -> Iterator[str]:
    try:
        root = ElementTree.fromstring(text)  # noqa: S314 - our own text
    except ElementTree.ParseError as error:
        yield f"XML {error}"
        return
    known = {"testsuites", "testsuite", "testcase", "system-out", "failure", "error", "skipped"}
    yield from (f"element {each.tag}" for each in root.iter() if each.tag not in known)


def _csv(text: str) -> Iterator[str]:
    for row in csv.reader(io.StringIO(text)):
        yield from (f"cell {cell}" for cell in row if cell.lstrip().startswith(("=", "+", "-", "@", "\t", "\r")))


def _json(text: str) -> Iterator[str]:
    try:
        json.loads(text)
    except ValueError as error:
        yield f"JSON {error}"


def _yaml(text: str) -> Iterator[str]:
    try:
        [*yaml.safe_load_all(text)]
    except yaml.YAMLError as error:
        yield f"YAML {error}"


def _sarif(text: str) -> Iterator[str]:
    yield from _json(text)
    for message in re.findall(r'"text": "((?:[^"\\]|\\.)*)"', text):
        if re.search(r"(?<!\\)\[[^\]]*[^\\]\]\(", json.loads(f'"{message}"')):
            yield f"link {message}"


READERS: Final[Mapping[str, Callable[[str], Iterator[str]]]] = {
    "html": _html,
    "markdown": _markdown,
    "junit": _xml,
    "csv": _csv,
    "json": _json,
    "gitlab": _json,
    "yaml": _yaml,
    "sarif": _sarif,
}
"""Readers of formats by name; each yields what it finds that is not ours."""


# -------------------------------------------------------------------------------------------------------- documents


def _policy(name: str, **rule: Any) -> dict[str, Any]:
    notes = ("title", "category", "severity", "description")
    return {
        "apiVersion": "kyverno.io/v1",
        "kind": "ClusterPolicy",
        "metadata": {
            "name": name,
            "labels": {name: name},
            "annotations": {f"policies.kyverno.io/{each}": name for each in notes} | {name: name},
        },
        "spec": {"background": False, "rules": [{"name": name, "match": _MATCH, **rule}]},
    }


_MATCH: Final = {"any": [{"resources": {"kinds": ["Pod"]}}]}


def _pod(name: str, **labels: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": name, "labels": {"own": name, **labels}, "annotations": {name: name}},
        "spec": {"containers": [{"name": name, "image": name, "env": [{"name": name, "value": name}]}]},
    }


def plant(folder: Path, name: str) -> None:
    """Write documents that have a name wherever they can, and files whose names are like it."""
    documents: dict[str, Any] = {
        "policy.yaml": _policy(name, validate={"message": name, "pattern": {"spec": {"hostPID": True}}}),
        "error.yaml": _policy(name, validate={"message": name, "deny": {"conditions": {"any": [{"key": "{{ x }}"}]}}}),
        "passes.yaml": _policy("other", validate={"message": name, "pattern": {"spec": {"containers": "*"}}}),
        "mutate.yaml": _policy(name, mutate={"patchStrategicMerge": {"metadata": {"labels": {"new": name}}}}),
        "generate.yaml": _policy(
            name,
            generate={
                **{"apiVersion": "v1", "kind": "ConfigMap", "name": name, "namespace": "a"},
                "data": {"data": {"a": name}},
            },
        ),
        "pod.yaml": _pod(name),
        "object.yaml": {"apiVersion": "a.b/v1", "kind": name, "metadata": {"name": name, "namespace": name}},
        "user.yaml": {"userInfo": {"username": name, "groups": [name]}, "clusterRoles": [name], "roles": [name]},
        "values.yaml": {
            "apiVersion": "cli.kyverno.io/v1alpha1",
            "kind": "Values",
            "metadata": {"name": name},
            "policies": [{"name": name, "rules": [{"name": name, "values": {"x": name}}]}],
            "namespaceSelector": [{"name": name, "labels": {"a": name}}],
        },
        "exception.yaml": {
            "apiVersion": "kyverno.io/v2",
            "kind": "PolicyException",
            "metadata": {"name": name, "namespace": name},
            "spec": {"match": _MATCH, "exceptions": [{"policyName": name, "ruleNames": [name]}]},
        },
        "reports.yaml": {
            "apiVersion": "wgpolicyk8s.io/v1alpha2",
            "kind": "PolicyReport",
            "metadata": {"name": name, "namespace": name},
            "scope": {"apiVersion": "v1", "kind": name, "name": name, "namespace": name},
            "results": [
                {
                    **{"policy": name, "rule": name, "message": name, "result": "fail", "severity": "high"},
                    **{"category": name, "source": name, "properties": {name: name}},
                    "resources": [{"apiVersion": "v1", "kind": name, "name": name, "namespace": name}],
                }
            ],
        },
        "kyverno-test.yaml": {
            "apiVersion": "cli.kyverno.io/v1alpha1",
            "kind": "Test",
            "metadata": {"name": name},
            "policies": ["policy.yaml"],
            "resources": ["pod.yaml"],
            "results": [
                {"policy": name, "rule": name, "resources": [name], "kind": "Pod", "result": result}
                for result in ("pass", "fail")
            ],
        },
        ".pyverno.yaml": {"apply": {"format": name}, name: name},
    }
    folder.mkdir(parents=True)
    for file, value in documents.items():
        (folder / file).write_text(json.dumps(value), encoding="utf-8")
    tree = folder / "tree"
    tree.mkdir()
    (tree / "pod.yaml").write_text(json.dumps(_pod("a")), encoding="utf-8")
    own = name.replace("/", "_").replace("\0", "")[:120]
    (tree / f"{own}.yaml").write_text("a: [\n", encoding="utf-8")
    (tree / f"p{own}.yaml").write_text(json.dumps(documents["policy.yaml"]), encoding="utf-8")
