"""The file of `--notifications`, in pyverno's form and in those of Policy Reporter."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from pyverno.errors import UsageError
from pyverno.ui.notifications.options import Secrets
from tests.support.notifications import settings

HELM = """
target:
  slack:
    webhook: https://hooks.slack.example/1
    minimumSeverity: high
    filter: {namespaces: {include: [team-*], exclude: [team-x]}}
    channels:
    - channel: b
      filter: {namespaces: {selector: {team: b}}}
  loki: {host: '', path: '', skipTLS: false, minimumSeverity: '', filter: {}, channels: []}
  telegram: {token: '', chatId: '', webhook: '', channels: []}
ui: {enabled: true}
"""
BINARY = """
target:
  loki: {config: {host: http://loki:3100, path: /x, headers: {a: b}}, name: L, skipExistingOnStartup: false}
"""
OBJECT = """
apiVersion: policyreporter.kyverno.io/v1alpha1
kind: TargetConfig
metadata: {name: prod}
spec: {name: '', minimumSeverity: medium, filter: {status: {include: [fail]}}, webhook: {webhook: https://x.example}}
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (HELM, [("slack", "slack", "high"), ("slack Channel 1", "slack", "high")]),
        (BINARY, [("L", "loki", "")]),
        (OBJECT, [("prod", "webhook", "medium")]),
        ("loki: {host: http://loki:3100}", [("loki", "loki", "")]),
        ("targets: [{name: a, type: teams, webhookFile: /x}]", [("a", "teams", "")]),
    ],
)
def test_every_form_of_a_target_is_read(text: str, expected: list[tuple[str, str, str]]) -> None:
    """Values of the chart, the file of the binary, objects, the older form without `target`, and ours."""
    found = settings(text).targets
    assert expected == [(each.name, each.kind, each.filter.minimum_severity) for each in found]


def test_a_channel_inherits_the_options_it_leaves_out() -> None:
    """Address and severity come from the target, channel and filter are its own."""
    found = settings(HELM)
    _, channel = found.targets
    options = asyncio.run(Secrets(None).options(channel))
    assert ("https://hooks.slack.example/1", "b") == (options.text("webhook"), options.text("channel"))
    assert channel.filter.namespace_labels is not None
    assert {} == channel.filter.rules
    assert ("`ui` has no meaning for notifications",) == found.notes


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("targets: [{type: slack, webhook: S3CRET, wehre: x}]", "unknown key `wehre`"),
        ("targets: [{type: slack, webhook: S3CRET, where: 'stauts=fail'}]", "unknown parameter `stauts`"),
        ("targets: [{type: slack, webhook: S3CRET, filter: {policy: {}}}]", "unknown `filter.policy`"),
        ("targets: [{type: slack, webhook: S3CRET, where: 'since=1d'}]", "no meaning for a change"),
        ("targets: [{type: slack, webhook: S3CRET, minimumSeverity: worst}]", "`minimumSeverity` must be one of"),
        ("targets: [{type: slack, webhook: S3CRET, digest: soon}]", "`digest` must be a time"),
        ("targets: [{type: slack, webhook: S3CRET, groupBy: team}]", "`groupBy` must be one of"),
        ("targets: [{type: slack, webhook: S3CRET}, {type: slack, webhook: S3CRET}]", "two targets have the name"),
        ("target: {pager: {token: S3CRET}}", "unknown type of target `pager`"),
        ("target: {}", "there is no target"),
    ],
)
def test_a_typing_error_is_an_error(text: str, reason: str) -> None:
    """Else a target would get everything, or nothing; values are not repeated, because they may be secrets."""
    with pytest.raises(UsageError, match=reason) as caught:
        settings(text)
    assert "S3CRET" not in str(caught.value)


def test_secrets_come_from_files_that_are_read_again(tmp_path: Path) -> None:
    """A file for one option, a mounted folder, or one file with JSON; the last read counts."""
    (tmp_path / "one").write_text("https://a.example/1\n")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "password").write_text("p")
    (tmp_path / "json").write_text(json.dumps({"username": "u", "unknown": "x"}))
    text = f"""
    targets:
    - {{name: a, type: webhook, webhookFile: '{tmp_path}/one', mountedSecret: '{tmp_path}/folder'}}
    - {{name: b, type: webhook, webhook: https://b.example, mountedSecret: '{tmp_path}/json'}}
    """
    first, second = settings(text).targets

    async def play() -> tuple[str, str, str, str]:
        secrets = Secrets(None)
        options = await secrets.options(first)
        (tmp_path / "one").write_text("https://a.example/2")
        again = await secrets.options(first)
        other = await secrets.options(second)
        return options.text("webhook"), again.text("webhook"), options.text("password"), other.text("username")

    assert ("https://a.example/1", "https://a.example/2", "p", "u") == asyncio.run(play())


def test_nothing_shows_the_value_of_an_option(tmp_path: Path) -> None:
    """Neither the texts of settings and options nor an error about a wrong file."""
    (tmp_path / "json").write_text('{"password": "S3CRET",')
    (target,) = settings(
        f"targets: [{{type: webhook, webhook: https://S3CRET, mountedSecret: '{tmp_path}/json'}}]"
    ).targets
    with pytest.raises(UsageError, match="must be a folder, or a file with a JSON object") as caught:
        asyncio.run(Secrets(None).options(target))
    assert "S3CRET" not in f"{target!r} {caught.value}"
