"""Credential helpers of docker."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest

from pyverno.engine.imagesource import ImageAccess
from pyverno.errors import HostError
from pyverno.registry.credentialhelpers import CredentialHelpers
from pyverno.registry.dockerconfig import DockerConfig

HOST = "a.example.com"


def _helper(folder: Path, script: str) -> None:
    program = folder / "docker-credential-test"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


def _ask(folder: Path, config: object = None, seconds: float = 60.0) -> list[tuple[str, str, str]]:
    helpers = CredentialHelpers(f"{folder}{os.pathsep}/bin{os.pathsep}/usr/bin", seconds)
    written = json.dumps(config or {"credHelpers": {HOST: "test"}}).encode()
    found = asyncio.run(helpers.sources(written, HOST))
    entries = [credential for each in found for _, credential in each.entries]
    return [(each.username, each.password, each.identity_token) for each in entries]


def test_the_program_of_a_registry_gives_its_credential(tmp_path: Path) -> None:
    """The helper receives the registry's name on its standard input."""
    _helper(tmp_path, 'read host; printf \'{"Username":"user","Secret":"%s"}\' "$host"')
    assert [("user", HOST, "")] == _ask(tmp_path)


@pytest.mark.parametrize(("key", "expected"), [("A.Example.COM:443", 1), ("a.example.com:5000", 0)])
def test_a_registry_has_one_name(tmp_path: Path, key: str, expected: int) -> None:
    """Upper case and the port 443 name no other one."""
    _helper(tmp_path, """printf '{"Username":"user","Secret":"s"}'""")
    assert expected == len(_ask(tmp_path, {"credHelpers": {key: "test"}}))


def test_a_token_is_no_password(tmp_path: Path) -> None:
    """Helpers mark identity tokens by a special user name."""
    _helper(tmp_path, """printf '{"Username":"<token>","Secret":"t"}'""")
    assert [("", "", "t")] == _ask(tmp_path, {"credsStore": "test"})


def test_a_program_without_a_credential_leaves_the_registry_anonymous(tmp_path: Path) -> None:
    """This is docker's behaviour."""
    _helper(tmp_path, "echo 'credentials not found in native keychain'; exit 1")
    assert [] == _ask(tmp_path)


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("exit 3", "ended with 3"),
        ("echo nonsense", "no JSON object"),
        ("echo '{}'", "without user name and secret"),
        ("head -c 100000 /dev/zero", "more than 65536 bytes"),
        ("exec sleep 20", "did not answer within 0.3 seconds"),
    ],
)
def test_a_program_that_fails_is_an_error(tmp_path: Path, script: str, problem: str) -> None:
    """An error never reads as "no credential"; output size, run time and exit code are checked."""
    _helper(tmp_path, script)
    with pytest.raises(HostError, match=problem):
        _ask(tmp_path, seconds=0.3 if "sleep" in script else 60.0)


@pytest.mark.parametrize("name", ["../evil", "/bin/sh", "a b", "x;y"])
def test_only_plain_names_are_run(tmp_path: Path, name: str) -> None:
    """A configuration holds the end of a program's name, never a path."""
    with pytest.raises(HostError, match="no plain name"):
        _ask(tmp_path, {"credsStore": name})


def test_a_program_that_is_missing_is_named(tmp_path: Path) -> None:
    """A configuration that was copied from another machine often lacks it."""
    with pytest.raises(HostError, match="`docker-credential-test` is not installed"):
        _ask(tmp_path)


def test_programs_run_only_where_they_are_allowed(tmp_path: Path) -> None:
    """A configuration alone starts no program."""
    _helper(tmp_path, f"touch {tmp_path}/ran")
    (tmp_path / "config.json").write_text(json.dumps({"credsStore": "test", "auths": {}}))
    found = asyncio.run(DockerConfig({"DOCKER_CONFIG": str(tmp_path)}).sources(ImageAccess(), HOST))
    assert ([()], False) == ([each.entries for each in found], (tmp_path / "ran").exists())
