"""The policy library, by name."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from pyverno.errors import UsageError
from pyverno.offline.policylibrary import find_controls, library_root, list_controls

SEVERITIES = {"low", "medium", "high", "critical"}


def test_every_control_describes_itself() -> None:
    """Title, category, severity, subject and description are there, and names are unique."""
    controls = list_controls()
    assert controls
    assert len(controls) == len({control.name for control in controls})
    for control in controls:
        assert control.severity in SEVERITIES, control.name
        assert all((control.title, control.category, control.subject, control.description)), control.name


def test_no_two_controls_of_a_dialect_share_a_name() -> None:
    """Policies of one name would replace each other in a cluster, and the short name would stand for both."""
    names = Counter((control.is_cel, control.path.parent.name) for control in list_controls())
    assert {name: count for name, count in names.items() if count > 1} == {}


def test_every_folder_with_cases_is_a_control() -> None:
    """A control whose README is missing would be in no list."""
    root = library_root()
    folders = {path.parent.relative_to(root).as_posix() for path in root.rglob("cases")}
    assert folders == {control.name for control in list_controls()}


def test_the_last_part_of_a_name_is_enough() -> None:
    """For both dialects; a folder gives all that is below it."""
    assert ["best-practices/disallow-latest-tag"] == [each.name for each in find_controls("disallow-latest-tag")]
    assert ["cel/best-practices/disallow-latest-tag"] == [
        each.name for each in find_controls("@cel/disallow-latest-tag")
    ]
    below = {each.name for each in find_controls("pod-security/")}
    assert below == {each.name for each in list_controls() if each.name.startswith("pod-security/")}


@pytest.mark.parametrize("name", ["", "@", "../best-practices", "best-practices/../pod-security", "/", "*", "x\n"])
def test_a_name_never_leaves_the_library(name: str) -> None:
    """Names are compared, never joined to a path."""
    with pytest.raises(UsageError):
        find_controls(name)


def test_a_folder_without_policies_has_none(tmp_path: Path) -> None:
    """YAML that is beside no README is no control."""
    (tmp_path / "README.md").write_text("")
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "a.yaml").write_text("a: 1")
    assert () == list_controls(tmp_path)
