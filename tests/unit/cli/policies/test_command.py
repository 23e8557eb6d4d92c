"""`pyverno policies`, and names of the library as policies of other commands."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests.support.commandline import Run

PRIVILEGED = """\
apiVersion: v1
kind: Pod
metadata: {name: careless, namespace: shop}
spec:
  containers:
  - name: main
    image: registry.example/app:1
    securityContext: {privileged: true}
"""


def test_the_list_can_be_filtered(cli: Run) -> None:
    """By name, severity, kind and text; each filter takes away."""
    every = json.loads(cli("policies", "list", "-o", "json").out)
    high = json.loads(cli("policies", "list", "--severity", "high", "-o", "json").out)
    services = json.loads(cli("policies", "list", "--kind", "Service", "-o", "json").out)
    searched = json.loads(cli("policies", "list", "best-practices", "--search", "LATEST", "-o", "json").out)
    assert {"high"} == {each["severity"] for each in high}
    assert len(high) < len(every)
    assert services
    assert all("Service" in each["subject"] for each in services)
    assert "best-practices/disallow-latest-tag" in {each["name"] for each in searched}


@pytest.mark.parametrize("form", ["table", "name", "json", "yaml", "markdown", "html"])
def test_every_format_lists_a_policy(form: str, cli: Run) -> None:
    """With the path that the other commands take."""
    ran = cli("policies", "list", "pod-security", "-o", form)
    assert 0 == ran.code
    assert "pod-security/baseline/disallow-host-ports" in ran.out


def test_a_filter_that_leaves_nothing_is_an_error(cli: Run) -> None:
    """An empty list would look like an empty library."""
    ran = cli("policies", "list", "--severity", "hgih")
    assert (1, "") == (ran.code, ran.out)
    assert "no policy of the library has all of this" in ran.err


def test_show_prints_reasons_and_text(cli: Run) -> None:
    """The policy alone, as YAML or JSON, is what kubectl takes."""
    text = cli("policies", "show", "disallow-latest-tag").out
    alone = yaml.safe_load(cli("policies", "show", "@disallow-latest-tag", "-o", "yaml").out)
    both = json.loads(cli("policies", "show", "disallow-latest-tag", "cel/disallow-latest-tag", "-o", "json").out)
    assert "## Why" in text
    assert "kind: ClusterPolicy" in text
    assert "disallow-latest-tag" == alone["metadata"]["name"]
    assert ["ClusterPolicy", "ValidatingPolicy"] == [item["kind"] for item in both["items"]]


@pytest.mark.parametrize("name", ["@disallow-latest-tags", "@pod-securty/baseline", "@nothing-like-it"])
def test_an_unknown_name_is_an_error(name: str, cli: Run) -> None:
    """Also where it stands for policies of another command; near names are suggested."""
    for words in (("policies", "show", name), ("apply", name, "-r", "good.yaml")):
        ran = cli(*words)
        assert 0 != ran.code
        assert f"no policy `{name}` in the library" in ran.err
        assert ("did you mean" in ran.err) == (name != "@nothing-like-it")


def test_names_of_the_library_are_policies_of_apply(folder: Path, cli: Run) -> None:
    """A folder stands for its policies in one dialect; `policies apply` is the same without the sign."""
    (folder / "pod.yaml").write_text(PRIVILEGED)
    by_sign = cli("apply", "@pod-security/baseline", "-r", "pod.yaml")
    by_command = cli("policies", "apply", "pod-security/baseline", "-r", "pod.yaml")
    by_cel = cli("apply", "@cel/pod-security/baseline", "-r", "pod.yaml")
    assert (1, 1, 1) == (by_sign.code, by_command.code, by_cel.code)
    assert by_sign.out == by_command.out
    assert "Privileged mode is not allowed" in by_sign.out
    assert "Privileged mode is not allowed" in by_cel.out


def test_a_copy_passes_its_own_tests(folder: Path, cli: Run) -> None:
    """The resources that a CEL policy shares with its twin come along."""
    assert 0 == cli("policies", "copy", "cel/disallow-latest-tag", "require-probes", "--to", "mine").code
    assert (folder / "mine/cel/best-practices/disallow-latest-tag/README.md").is_file()
    ran = cli("test", "mine")
    assert 0 == ran.code
    assert "0 tests failed" in ran.out


def test_a_copy_does_not_replace_changed_files(folder: Path, cli: Run) -> None:
    """Without --force nothing is written at all."""
    cli("policies", "copy", "disallow-latest-tag", "--to", "mine")
    policy = folder / "mine/best-practices/disallow-latest-tag/clusterpolicy.yaml"
    shipped = policy.read_text()
    policy.write_text("mine: true\n")
    refused = cli("policies", "copy", "best-practices", "--to", "mine")
    assert refused.code != 0
    assert "exists and differs" in refused.err
    assert ["disallow-latest-tag"] == [path.name for path in (folder / "mine/best-practices").iterdir()]
    assert 0 == cli("policies", "copy", "best-practices", "--to", "mine", "--force").code
    assert shipped == policy.read_text()
