"""The routes of the playground."""

from __future__ import annotations

import asyncio
import io
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.support import documents
from tests.support.playgroundlinks import LINK
from tests.support.uiserver import serve_ui
from tests.unit.ui.playground.test_review import POD


def test_every_route_of_the_playground_answers(tmp_path: Path) -> None:
    """A review with its explanation, a suite as an archive, an import; a bad body is one clear error each."""

    async def play() -> None:
        texts = {"policies": documents.LATEST, "resources": POD}
        async with serve_ui(tmp_path) as ui:
            found = await ui.post("/api/v1/review", {**texts, "explain": True})
            assert found["reviews"][0]["rules"]
            async with ui.session.post(f"{ui.url}/api/v1/testcase", json=texts) as response:
                names = zipfile.ZipFile(io.BytesIO(await response.read())).namelist()
            assert ["kyverno-test.yaml", "policies.yaml", "resources.yaml"] == [name.split("/")[1] for name in names]
            imported = await ui.post("/api/v1/import", {"text": LINK})
            assert "policies" in imported["profiles"][0]["state"]
            assert "damaged" in (await ui.post("/api/v1/import", {"text": "BYUw"}, status=400))["error"]
            assert "text" in (await ui.post("/api/v1/import", {"text": 1}, status=400))["error"]
            assert "change" in (await ui.post("/api/v1/review", {**texts, "change": 1}, status=400))["error"]

    asyncio.run(play())


SCENARIOS: Mapping[str, list[str]] = {
    "require-labels": ["Deployment nginx CREATE denied: autogen-check-team fail"],
    "add-labels": ["Pod redis CREATE admitted: add-team pass", "/metadata/labels/team=bravo"],
    "pre-stop": [
        "Pod web CREATE admitted: mutate-poststart-script-raptor-config-curl pass, "
        "mutate-prestop-script-sleep-test pass, mutate-termination-grace-period-seconds-test pass",
        "/spec/terminationGracePeriodSeconds=50",
    ],
    "sync-secrets": [
        "Namespace mytestns CREATE admitted: sync-image-pull-secret pass",
        "create Secret mytestns/regcred",
    ],
    "namespace-defaults": [
        "Namespace team CREATE admitted: deny-all-traffic pass, owner-is-admin pass",
        "create NetworkPolicy team/default-deny",
        "create RoleBinding team/owner-admin",
    ],
    "replica-limit": [
        "Deployment five CREATE denied: replicalimit-policy.example.com fail",
        "Deployment five CREATE admitted: replicalimit-policy.example.com pass",
    ],
    "argo-clusters": ["Cluster prod CREATE admitted: cluster-secret pass", "create Secret argocd/cluster-prod"],
    "restart": ["ConfigMap web-settings UPDATE admitted: web pass", "patch Deployment default/web"],
}
"""The expected outcome of each scenario: results, changes of single values, and effects."""


def outcome_of(review: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a review shows, one line each."""
    decision = "admitted" if review["allowed"] else "denied"
    results = ", ".join(f"{each['rule'] or each['policy']} {each['status']}" for each in review["results"])
    yield f"{review['resource']['kind']} {review['resource']['name']} {review['operation']} {decision}: {results}"
    for each in review.get("patch", ()):
        if not isinstance(each["value"], dict):
            yield f"{each['path']}={each['value']}"
    for each in review["effects"]:
        found = each["resource"]
        yield f"{each['type']} {found['kind']} {found['namespace']}/{found['name']}"


def test_every_scenario_shows_what_its_title_promises(tmp_path: Path) -> None:
    """Each example is read from the server and reviewed by it, without a problem in any of its texts."""

    async def play() -> None:
        async with serve_ui(tmp_path) as ui:
            names = [each["name"] for each in await ui.get("/api/v1/examples")]
            own = [name.removeprefix("scenarios/") for name in names if name.startswith("scenarios/")]
            assert [*SCENARIOS] == own
            for name in own:
                example = await ui.get(f"/api/v1/examples/scenarios/{name}")
                found = await ui.post("/api/v1/review", example)
                assert (name, []) == (name, found["problems"])
                assert SCENARIOS[name] == [line for each in found["reviews"] for line in outcome_of(each)]
            await ui.get("/api/v1/examples/scenarios/unknown", status=400)

    asyncio.run(play())
