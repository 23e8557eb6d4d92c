"""`pyverno install`: what cannot be installed is an error of the command, not of the cluster."""

from __future__ import annotations

import pytest

from tests.support.commandline import Run


@pytest.mark.parametrize("name", ["", "Policy", "a_b", "-a", "a" * 64])
def test_a_namespace_needs_a_name_that_an_api_server_accepts(cli: Run, name: str) -> None:
    """Otherwise kubectl would apply half of the manifests."""
    ran = cli("install", "--dry-run", "--namespace", name)
    assert (1, "") == (ran.code, ran.out)
    assert ran.err.startswith(f"Error: `{name}` cannot be the name of a namespace")


def test_manifests_are_printed_only_on_request(cli: Run) -> None:
    """The command writes to no cluster."""
    ran = cli("install")
    assert (1, "", True) == (ran.code, ran.out, "run `pyverno install --dry-run | kubectl apply -f -`" in ran.err)
    assert (0, True) == ((ran := cli("install", "--dry-run", "--crds-only")).code, "---\n" in ran.out)
