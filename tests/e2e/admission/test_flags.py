"""One controller as a process with many flags: metrics by HTTPS, profiles, dumps without what is in Secrets."""

from __future__ import annotations

import asyncio
import base64
import os
import re
import signal
import ssl
import sys
from pathlib import Path

import aiohttp
import pytest

from kubesandbox import Sandbox
from pyverno.cluster.access import load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError
from tests.deploy.test_monitoring import delivered, expressions, metric_names
from tests.e2e.admission.deployment import POLICIES, SECRETS, VALIDATING, install, until
from tests.support.ports import free_port

WORD = "c2VjcmV0LXdvcmQ="
POLICY: JSONObject = {
    "apiVersion": "kyverno.io/v1",
    "kind": "ClusterPolicy",
    "metadata": {"name": "no-words"},
    "spec": {
        "rules": [
            {
                "name": "rule",
                "match": {"any": [{"resources": {"kinds": ["Secret"], "namespaces": ["default"]}}]},
                "validate": {
                    "failureAction": "Enforce",
                    "message": "this is no word: {{ request.object.data.word }}",
                    "deny": {},
                },
            }
        ]
    },
}
SECRET: JSONObject = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "words", "namespace": "default"},
    "data": {"word": WORD},
}
OF_OTHERS = {
    "background": [
        "kyverno_quarantines",
        "kyverno_updaterequest_failures_total",
        "kyverno_updaterequest_oldest_seconds",
        "kyverno_updaterequest_total",
    ],
    "reports": [
        "kyverno_scan_duration_seconds",
        "kyverno_scan_objects",
        "kyverno_scan_queue_age_seconds",
        "kyverno_scan_unreadable_resources",
    ],
    "cleanup": [f"kyverno_{word}_controller_deletedobjects_total" for word in ("cleanup", "deleting", "ttl")],
    "API server": [f"apiserver_admission_webhook_{event}_count" for event in ("fail_open", "rejection")],
}
"""Metrics of dashboards and alert rules that the admission controller does not serve, by the process that does."""


def test_a_controller_with_many_flags(tmp_path: Path) -> None:
    """Flags have one hyphen or two, are in words or the environment; metrics are those that dashboards read."""
    log = tmp_path / "log"
    webhook, metrics, profiles = free_port(), free_port(), free_port()
    flags = [
        *("-webhookServerHost", "127.0.0.1", "--webhookServerPort", str(webhook), f"--serverIP=127.0.0.1:{webhook}"),
        *("-metricsHost=127.0.0.1", "--metricsPort", str(metrics), "--shutdownDelay=10ms", "-v", "4"),
        *("--metricsTLSSecretName=metrics-tls", "--metricsCASecretName=metrics-ca", "--metricsServerIP=127.0.0.1"),
        *("--profile", "--profilePort", str(profiles), "--dumpPayload", "--protectManagedResources", "false"),
        *("-autoMemLimitRatio", "0.5", "--loggingFormat=json"),
    ]

    async def run() -> None:
        async with Sandbox() as sandbox:
            access = load_kubeconfig(sandbox.kubeconfig)
            async with Client(access, qps=0) as client, aiohttp.ClientSession() as session:
                await install(client)
                environment = {**os.environ, "KUBECONFIG": sandbox.kubeconfig, "FLAG_DUMP_PATCHES": "true"}
                with log.open("wb") as stream:
                    process = await asyncio.create_subprocess_exec(
                        *(sys.executable, "-m", "pyverno", "controller", "admission", *flags),
                        env=environment,
                        stdout=stream,
                        stderr=stream,
                    )
                try:
                    await scene(client, session)
                finally:
                    process.send_signal(signal.SIGTERM)
                    code = await asyncio.wait_for(process.wait(), 60)
        assert 0 == code

    async def scene(client: Client, session: aiohttp.ClientSession) -> None:
        async def is_configured() -> bool:
            found = (await client.list(VALIDATING))["items"]
            names = {hook["name"] for each in found for hook in each.get("webhooks") or ()}
            return any(name.startswith("validate.kyverno.svc") for name in names)

        await until("the policy webhook is there", lambda: _has(client, "kyverno-policy-validating-webhook-cfg"))
        await client.create(POLICIES, POLICY)
        await until("the webhook of resources is there", is_configured)
        with pytest.raises(StatusError, match="no word"):
            await client.create(SECRETS, SECRET, "default")
        secret = await client.get(SECRETS, "metrics-ca", "kyverno")
        context = ssl.create_default_context(cadata=base64.b64decode(secret["data"]["tls.crt"]).decode())
        async with session.get(f"https://127.0.0.1:{metrics}/metrics", ssl=context) as reply:
            text = await reply.text()
        assert 'policy_name="no-words"' in text
        assert "kyverno_client_queries_total{" in text
        check_dashboards(text)
        async with session.get(f"http://127.0.0.1:{profiles}/threads") as reply:
            assert "thread MainThread" in await reply.text()

    asyncio.run(run())
    written = log.read_text()
    assert '"msg":"admission request dump"' in written
    assert '"flags":"--autoMemLimitRatio"' in written
    assert '"verdict":"fail"' in written
    assert WORD not in written


def check_dashboards(text: str) -> None:
    """Check that the names of dashboards and alert rules are served here, or are those of another process."""
    served = set(re.findall(r"^# TYPE (\S+)", text, re.MULTILINE))
    wanted = {name for _, expression in expressions() for name in metric_names(expression)}
    elsewhere = {name for name in wanted if re.sub("_(bucket|sum|count)$", "", name) not in served}
    assert sorted(name for names in OF_OTHERS.values() for name in names) == sorted(elsewhere)
    assert elsewhere <= delivered().keys()
    assert len(wanted - elsewhere) > 20


async def _has(client: Client, name: str) -> bool:
    return any(each["metadata"]["name"] == name for each in (await client.list(VALIDATING))["items"])
