"""Docker and podman configurations as sources of credentials."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from pyverno.engine.imagesource import ImageAccess
from pyverno.errors import HostError
from pyverno.registry.dockerconfig import DockerConfig


def test_the_configurations_of_docker_come_before_those_of_podman(tmp_path: Path) -> None:
    """Missing files are skipped."""
    (tmp_path / "config.json").write_text('{"auths": {"a.example.com": {"username": "u", "password": "p"}}}')
    (tmp_path / "auth.json").write_text('{"auths": {}}')
    environment = {
        "DOCKER_CONFIG": str(tmp_path),
        "REGISTRY_AUTH_FILE": f"{tmp_path}/auth.json",
        "XDG_RUNTIME_DIR": "/x",
    }
    found = asyncio.run(DockerConfig(environment).sources(ImageAccess(), "a.example.com"))
    assert [each.name for each in found] == [f"file {tmp_path}/config.json", f"file {tmp_path}/auth.json"]


def test_a_broken_configuration_is_an_error_without_its_content(tmp_path: Path) -> None:
    """The error names the file only."""
    (tmp_path / "config.json").write_text('["secret"]')
    with pytest.raises(HostError) as caught:
        asyncio.run(DockerConfig({"DOCKER_CONFIG": str(tmp_path)}).sources(ImageAccess(), "a.example.com"))
    assert "secret" not in caught.value.message
