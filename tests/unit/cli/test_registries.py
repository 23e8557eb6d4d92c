"""Commands that read registries with `--registry`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.support.commandline import Run
from tests.support.images import ImageStage, image_stage

TEST = """apiVersion: cli.kyverno.io/v1alpha1
kind: Test
metadata: {name: images}
policies: [policy.yaml]
resources: [pod.yaml]
results:
- policy: signed
  rule: check
  resources: [pod]
  kind: Pod
  result: pass
"""


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ImageStage]:
    """A registry, and in the folder a policy about signatures and a Pod of an image without one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "none"))
    with image_stage() as made:
        made.push()
        Path("root.json").write_bytes(made.services.trusted_root())
        Path("policy.yaml").write_text(yaml.safe_dump(made.policy()))
        Path("pod.yaml").write_text(yaml.safe_dump(made.pod(made.image())))
        Path("kyverno-test.yaml").write_text(TEST)
        yield made


def test_apply_verifies_images_with_the_trusted_root(cli: Run, stage: ImageStage) -> None:
    """Without --registry nothing is read, and what cannot be verified is no pass."""
    arguments = ("apply", "policy.yaml", "-r", "pod.yaml")
    trusted = (*arguments, "--registry", "--trust-root", "root.json")
    codes = [cli(*arguments).code, cli(*trusted).code]
    stage.sign(stage.push())
    assert [1, 1, 0] == [*codes, cli(*trusted).code]


def test_suites_verify_images_with_the_trusted_root(cli: Run, stage: ImageStage) -> None:
    """As `apply` does."""
    arguments = ("test", ".", "--registry", "--trust-root", "root.json")
    before = cli(*arguments).code
    stage.sign(stage.push())
    assert (1, 0) == (before, cli(*arguments).code)


def test_a_trusted_root_that_cannot_be_read_is_an_error(cli: Run, stage: ImageStage) -> None:
    """It is named."""
    Path("bad.json").write_text("{")
    found = [
        cli("apply", "policy.yaml", "-r", "pod.yaml", "--registry", "--trust-root", each)
        for each in ("bad.json", "missing.json")
    ]
    assert [(1, True), (1, True)] == [(ran.code, "--trust-root `" in ran.err) for ran in found]
