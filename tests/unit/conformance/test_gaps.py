"""Known gaps have ids and reasons, each once."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyverno.errors import UsageError
from tests.conformance.gaps import read_gaps


def test_the_list_of_the_project_can_be_read() -> None:
    """Every known gap has a reason that says something."""
    assert all(len(reason) > 40 for reason in read_gaps().values())


def test_reasons_are_one_line(tmp_path: Path) -> None:
    """Folded texts become one line."""
    file = tmp_path / "gaps.yaml"
    file.write_text("- id: a/b\n  reason: >-\n    two\n    lines\n")
    assert {"a/b": "two lines"} == read_gaps(file)


def test_an_empty_list_has_no_gaps(tmp_path: Path) -> None:
    """A file of comments only is an empty list."""
    file = tmp_path / "gaps.yaml"
    file.write_text("# none\n")
    assert {} == read_gaps(file)


@pytest.mark.parametrize(
    "text",
    [
        "- id: a\n",
        "- {id: a, reason: ''}\n",
        "- {id: a, reason: true}\n",
        "- a\n",
        "- {id: a, reason: b, more: c}\n",
        "- {id: a, reason: b}\n- {id: a, reason: c}\n",
    ],
)
def test_bad_entries_are_refused(tmp_path: Path, text: str) -> None:
    """An entry without a reason, with more than that, or twice is an error."""
    file = tmp_path / "gaps.yaml"
    file.write_text(text)
    with pytest.raises(UsageError, match=r"gaps\.yaml"):
        read_gaps(file)
