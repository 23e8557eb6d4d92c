"""Jira: an issue for each notice; with `resolved: true` a comment on the issue of the result.

Version 3 of the API takes documents, in which texts are no markup; for version 2 marks are escaped. Issues carry a
label of the result and one of the notice: a repeated delivery first looks for its issue.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from pyverno.cluster.serviceurl import ServiceUrl
from pyverno.errors import UsageError
from pyverno.kube.json import JSON, JSONObject
from pyverno.ui.notifications.delivery import Delivery, DeliveryError
from pyverno.ui.notifications.notice import Notice, clip
from pyverno.ui.notifications.options import Options
from pyverno.ui.notifications.targets.lines import list_fields, one_line
from pyverno.ui.notifications.transport import Endpoint, Transport, basic_login
from pyverno.value import dataclass, replace

__all__ = ["open_jira"]

_SUMMARY: Final = "{{ .result.ResourceString }}: Policy Violation: {{ .result.Policy }}"
_PLACEHOLDER: Final = re.compile(r"\{\{\s*\.(result|customfield)\.([A-Za-z0-9_]+)\s*\}\}")
_FIELDS: Final[Mapping[str, str]] = {
    "ResourceString": "resource",
    "Policy": "policy",
    "Rule": "rule",
    "Result": "status",
    "Severity": "severity",
    "Category": "category",
    "Source": "source",
    "Description": "message",
    "Message": "message",
}
_MARKS: Final = re.compile(r"([\\*_\-+^~{}\[\]|!#@?()<>:])")
_NOT_LABEL: Final = re.compile(r"[^A-Za-z0-9._-]")
_CUSTOM: Final = "customfield_"


@dataclass(frozen=True, slots=True)
class _Project:
    key: str
    issue_type: str
    labels: Sequence[str]
    components: Sequence[str]
    summary: str
    is_second: bool


async def open_jira(transport: Transport, options: Options) -> Jira:
    """Return the target of these options; raises UsageError for a template with more than fields."""
    summary = options.text("summaryTemplate") or _SUMMARY
    if "{{" in _PLACEHOLDER.sub("", summary) or any(
        group == "result" and name not in _FIELDS for group, name in _PLACEHOLDER.findall(summary)
    ):
        raise UsageError(
            "`summaryTemplate` may only have `{{ .customfield.NAME }}` and `{{ .result.NAME }}` with NAME one of "
            f"{', '.join(_FIELDS)}"
        )
    is_second = options.choice("apiVersion", ("v3", "v2")) == "v2"
    endpoint = await Endpoint.open(transport, options, "host", f"/rest/api/{'2' if is_second else '3'}/issue")
    login = ""
    if token := options.text("apiToken"):
        login = f"Bearer {token}"
        if user := options.text("username"):
            login = basic_login(user, token)
    project = _Project(
        options.required("projectKey"),
        options.text("issueType") or "Task",
        options.texts("labels"),
        options.texts("components"),
        summary,
        is_second,
    )
    return Jira(endpoint, project, login)


class Jira:
    """One project."""

    def __init__(self, endpoint: Endpoint, project: _Project, login: str) -> None:
        """Take the address of issues; `login` replaces the header of user and password."""
        self._endpoint = endpoint
        self._project = project
        self._headers = {"Authorization": login} if login else {}

    async def send(self, delivery: Delivery) -> None:
        """Open an issue, or comment on the one of a result that is resolved or changed."""
        for notice in delivery.notices:
            if notice.before and (known := await self._find(f"result-{notice.key}")):
                await self._comment(known, notice)
                continue
            if notice.is_resolved or (delivery.attempt > 1 and await self._find(f"notice-{notice.id}")):
                continue
            reply = await self._endpoint.send({"fields": self._fields(notice, delivery.custom)}, headers=self._headers)
            if not isinstance(reply.json(), dict):
                raise DeliveryError("the target does not answer with an issue")

    async def _find(self, label: str) -> str:
        """Return the key of the latest issue with a label."""
        path = self._endpoint.url.path.removesuffix("/issue") + (
            "/search" if self._project.is_second else "/search/jql"
        )
        # a label is made of letters, digits and dashes: it needs no escape
        body: JSONObject = {"jql": f'labels = "{label}" ORDER BY created DESC', "maxResults": 1, "fields": ["key"]}
        reply = await self._endpoint.send(body, url=self._below(path), headers=self._headers)
        answer = reply.json()
        issues = answer.get("issues") if isinstance(answer, dict) else None
        first = issues[0] if isinstance(issues, list) and issues else None
        key = first.get("key") if isinstance(first, dict) else None
        if key is None:
            return ""
        if not isinstance(key, str) or _NOT_LABEL.search(key):
            raise DeliveryError("the target does not answer with the key of an issue")
        return key

    async def _comment(self, issue: str, notice: Notice) -> None:
        text = f"{notice.before} → {notice.outcome}: {notice.message}"
        path = f"{self._endpoint.url.path}/{issue}/comment"
        await self._endpoint.send({"body": self._document([("", text)])}, url=self._below(path), headers=self._headers)

    def _below(self, path: str) -> ServiceUrl:
        return replace(self._endpoint.url, path=path)

    def _fields(self, notice: Notice, custom: Mapping[str, str]) -> JSONObject:
        project = self._project
        own = {key: value for key, value in custom.items() if key.startswith(_CUSTOM)}
        shown = {key: value for key, value in custom.items() if key not in own}
        labels = [
            "policy-reporter",
            "policy-violation",
            f"policy-{notice.policy}",
            *([f"severity-{notice.severity}"] if notice.severity else []),
            f"result-{notice.key}",
            f"notice-{notice.id}",
            *project.labels,
        ]
        return {
            "project": {"key": project.key},
            "issuetype": {"name": project.issue_type},
            "summary": _summary(project.summary, notice, custom),
            "labels": [clip(_NOT_LABEL.sub("_", each), 250).rstrip("…") for each in labels],
            "description": self._document(list(list_fields(notice, shown))),
            "components": [{"name": name} for name in project.components],
            **own,
        }

    def _document(self, fields: Sequence[tuple[str, str]]) -> JSON:
        """Return fields as text of version 2, or as a document of version 3."""
        if self._project.is_second:
            return "\n".join(f"*{_escape(name)}*: {_escape(text)}" if name else _escape(text) for name, text in fields)
        content: list[JSON] = []
        for name, text in fields:
            runs: list[JSON] = [{"type": "text", "text": clip(text, 4000)}]
            if name:
                runs.insert(0, {"type": "text", "text": f"{one_line(name)}: ", "marks": [{"type": "strong"}]})
            content.append({"type": "paragraph", "content": runs})
        return {"version": 1, "type": "doc", "content": content}


def _summary(template: str, notice: Notice, custom: Mapping[str, str]) -> str:
    """Return the summary; the value of a placeholder is never read as a template."""

    def fill(found: re.Match[str]) -> str:
        return custom.get(found[2], "") if found[1] == "customfield" else str(getattr(notice, _FIELDS[found[2]]))

    return clip(one_line(_PLACEHOLDER.sub(fill, template)), 250)


def _escape(text: str) -> str:
    return _MARKS.sub(r"\\\1", one_line(clip(text, 4000)))
