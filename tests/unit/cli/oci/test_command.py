"""`pyverno oci`: policies go to a registry and come back."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.authority.registry import Registry
from tests.support.commandline import Run
from tests.support.images import image_stage

POLICY = {
    "apiVersion": "kyverno.io/v1",
    "kind": "ClusterPolicy",
    "metadata": {"name": "no-latest"},
    "spec": {
        "rules": [
            {
                "name": "tag",
                "match": {"any": [{"resources": {"kinds": ["Pod"]}}]},
                "validate": {"message": "no", "pattern": {"spec": {"containers": [{"image": "!*:latest"}]}}},
            }
        ]
    },
}


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry]:
    """A registry with a login stored in the Docker configuration, and policies in the folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    Path("policies").mkdir()
    Path("policies/first.yaml").write_text(yaml.safe_dump(POLICY))
    second = {**POLICY, "kind": "Policy", "metadata": {"name": "second", "namespace": "team"}}
    Path("policies/second.yaml").write_text(yaml.safe_dump(second))
    with image_stage(users={"user": "word"}) as stage:
        auth = base64.b64encode(b"user:word").decode()
        Path("config.json").write_text(json.dumps({"auths": {stage.registry.host: {"auth": auth}}}))
        yield stage.registry


def test_policies_come_back_as_they_were_pushed(cli: Run, registry: Registry) -> None:
    """With the media types and annotations of Kyverno's command line."""
    image = f"{registry.host}/team/policies:1"
    pushed = cli("oci", "push", "policies", "-i", image)
    assert 0 == pushed.code, pushed.err
    body = json.loads(registry.manifests["team/policies", "1"][1])
    pulled = cli("oci", "pull", "-i", image, "-d", "out")
    assert 0 == pulled.code, pulled.err
    assert (
        "application/vnd.cncf.kyverno.config.v1+json",
        [("application/vnd.cncf.kyverno.policy.layer.v1+yaml", "ClusterPolicy"), (LAYER, "Policy")],
        ["no-latest.yaml", "second.yaml"],
        POLICY,
    ) == (
        body["config"]["mediaType"],
        [(each["mediaType"], each["annotations"]["io.kyverno.image.kind"]) for each in body["layers"]],
        sorted(each.name for each in Path("out").iterdir()),
        yaml.safe_load(Path("out/no-latest.yaml").read_text()),
    )


LAYER = "application/vnd.cncf.kyverno.policy.layer.v1+yaml"


def test_an_invalid_policy_is_not_pushed(cli: Run, registry: Registry) -> None:
    """Nothing is sent before everything compiles."""
    Path("policies/third.yaml").write_text(yaml.safe_dump({**POLICY, "spec": {"rules": [{"name": "x"}]}}))
    pushed = cli("oci", "push", "policies", "-i", f"{registry.host}/team/policies:1")
    assert (1, [], True) == (pushed.code, registry.authorizations, "third.yaml" in pushed.err)


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ({**POLICY, "metadata": {"name": "../../escape"}}, "no valid name"),
        ({**POLICY, "metadata": {"name": "/var/escape"}}, "no valid name"),
        ({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x"}}, "is no policy"),
        (["no object"], "is no policy"),
    ],
)
def test_what_an_artifact_holds_is_not_trusted(cli: Run, registry: Registry, document: object, problem: str) -> None:
    """A name never leaves the folder, and nothing is written beside policies (CVE-2026-50162, CVE-2026-50163)."""
    body = yaml.safe_dump(document).encode()
    registry.push("team/policies", "1", layers=(body,))
    manifest = json.loads(registry.manifests["team/policies", "1"][1])
    manifest["layers"][0]["mediaType"] = LAYER
    registry.put_manifest("team/policies", "1", manifest["mediaType"], manifest)
    pulled = cli("oci", "pull", "-i", f"{registry.host}/team/policies:1", "-d", "out")
    assert (1, True, False) == (pulled.code, problem in pulled.err, Path("out").exists())


def test_an_image_without_policies_is_an_error(cli: Run, registry: Registry) -> None:
    """As is one that does not exist."""
    registry.push("team/app", "v1")
    found = [cli("oci", "pull", "-i", f"{registry.host}/{each}").err for each in ("team/app:v1", "team/app:v2")]
    assert [True, True] == ["holds no policies" in found[0], "there is no artifact" in found[1]]
