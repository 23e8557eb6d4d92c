"""The scenarios among the examples of the playground."""

from __future__ import annotations

import tomllib
from pathlib import Path

from pyverno.ui.playground.examples import demo_root, list_scenarios, read_scenario
from pyverno.ui.playground.review import INPUTS

ROOT = Path(__file__).parents[4]


def test_every_scenario_is_texts_of_a_review() -> None:
    """With a title, policies and resources; the name of a control is no scenario."""
    found = [read_scenario(each["name"]) for each in list_scenarios()]
    assert all(each and each["title"] and each["policies"] and each["resources"] for each in found)
    assert set() == {key for each in found if each for key in each} - {"name", "title", *INPUTS}
    assert read_scenario("pod-security/baseline/disallow-host-path") is None


def test_the_manifests_are_in_the_wheel() -> None:
    """The path of the examples in an installation."""
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel["force-include"][demo_root().relative_to(ROOT).as_posix()] == "pyverno/demo"
