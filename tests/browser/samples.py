"""Reports that the pages show: ordinary ones, and one whose every text tries to be a script."""

from __future__ import annotations

from collections.abc import Sequence

from pyverno.errors import UsageError
from pyverno.kube.json import JSONObject
from pyverno.ui.notifications.counts import NotificationCounts
from pyverno.ui.server.targets import TargetStatus
from pyverno.ui.store.rows import StoredResult
from pyverno.ui.store.writer import Report
from tests.support.notifications import settings
from tests.unit.ui.store.samples import report, result

HOSTILE = "<img src=x onerror=alert(1)>\"'><script>alert(2)</script>"


def sample_reports() -> list[Report]:
    """Return the reports."""
    return [
        report(
            result("require-labels", "team", name="web", namespace="shop", message="the label `team` is missing"),
            result("require-labels", "team", "pass", name="api", namespace="shop", severity="low", message=""),
            result("no-latest", "tag", "warn", name="web", namespace="shop", kind="Deployment", severity="medium"),
            result("no-latest", "tag", "error", name="db", namespace="data", message="cannot read the ConfigMap"),
            result(
                "no-latest",
                "tag",
                "skip",
                name="old",
                namespace="data",
                severity="info",
                properties={"exceptions": "for-web"},
            ),
            name="ordinary",
            labels={"team": "blue"},
        ),
        report(
            result(
                HOSTILE,
                HOSTILE,
                name=HOSTILE,
                namespace=HOSTILE,
                kind=HOSTILE,
                message=HOSTILE,
                properties={HOSTILE: HOSTILE},
            ),
            name="hostile",
        ),
        report(
            *(result(f"many-{number:02}", name=f"pod-{number}", namespace="many") for number in range(60)), name="many"
        ),
    ]


def sample_targets() -> list[TargetStatus]:
    """Return two targets, one of them with an error that tries to be a script."""
    counts = NotificationCounts()
    counts.sent["team-a"] = 12
    counts.failed["team-a"] = 1
    counts.problems["team-a"] = HOSTILE
    found = settings(
        "targets: [{name: team-a, type: slack, webhook: 'https://hooks.example/S3CRET', digest: 10m, groupBy: policy}, "
        "{name: mail, type: email, host: mail.example, from: a@b.example, to: [c@d.example]}]"
    )
    return [TargetStatus(each, counts) for each in found.targets]


POLICY = "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata:\n  name: require-labels\n"
OBJECT = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: web\n"


class SampleInspector:
    """A cluster that knows one policy and two exceptions, one of them with hostile texts."""

    async def policies(self, key: str) -> list[JSONObject]:
        """Return the policy `require-labels`, and nothing else."""
        policy: JSONObject = {
            "kind": "ClusterPolicy",
            "apiVersion": "kyverno.io/v1",
            "name": "require-labels",
            "namespace": "",
            "created": "2026-01-02T03:04:05Z",
            "title": "Labels",
            "description": "Every object names its team.",
            "text": POLICY,
            "kinds": ["v1/Pod"],
            "conditions": [{"type": "Ready", "status": "True", "reason": "Succeeded", "message": ""}],
            "exceptions": await self.exceptions(),
        }
        return [policy] if key == "require-labels" else []

    async def exceptions(self) -> list[JSONObject]:
        """Return the exceptions."""
        return [
            _exception("for-web", "require-labels", is_known=True, expires="2031-05-06T00:00:00Z"),
            _exception(HOSTILE, HOSTILE, is_known=False),
        ]

    async def problems(self) -> Sequence[str]:
        """Return none."""
        return ()

    async def explain(self, result: StoredResult) -> JSONObject:
        """Explain the results of the one policy."""
        finding = result.collected.finding
        if finding.policy != "require-labels":
            raise UsageError(f"the cluster has no policy `{finding.policy}` any more")
        place = {"input": "resources", "line": 4, "column": 3}
        lines = [{"depth": 0, "text": "fail: the label is missing", "word": "fail", "place": place}]
        rule = {"policy": finding.policy, "rule": finding.rule, "matched": True, "isOld": False, "lines": lines}
        return {"policies": POLICY, "resources": OBJECT, "rules": [{**rule, "change": lines, "statuses": ["fail"]}]}

    async def draft(self, result: StoredResult) -> JSONObject:
        """Return a draft that has the effect it should."""
        row = {"policy": result.collected.finding.policy, "rule": "team", "message": ""}
        return {
            "exception": "kind: PolicyException\n",
            "before": [{**row, "status": "fail"}],
            "after": [{**row, "status": "skip"}],
        }


def _exception(name: str, policy: str, *, is_known: bool, expires: str = "") -> JSONObject:
    return {
        "kind": "PolicyException",
        "apiVersion": "kyverno.io/v2",
        "namespace": "shop",
        "name": name,
        "created": "2026-01-02T03:04:05Z",
        "expires": expires,
        "policies": [{"name": policy, "rules": ["team"], "exists": is_known}],
        "text": f"kind: PolicyException\nmetadata:\n  name: {name}\n",
    }
