"""Colours and progress appear on a terminal only."""

from __future__ import annotations

import io
import sys

import pytest

from pyverno.cli.progress import tracked
from pyverno.cli.style import style_for


class Terminal(io.StringIO):
    """A stream whose `isatty` is true."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "remove", "no_color", "expected"),
    [
        (Terminal(), False, "", True),
        (Terminal(), True, "", False),
        (Terminal(), False, "1", False),
        (io.StringIO(), False, "", False),
    ],
)
def test_colours_need_a_terminal(
    stream: io.StringIO, remove: bool, no_color: str, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NO_COLOR and --remove-color switch them off there too."""
    monkeypatch.setenv("NO_COLOR", no_color)
    assert expected == style_for(stream, remove_color=remove).is_coloured


def test_only_result_cells_are_painted() -> None:
    """Cells of other columns get no color."""
    style = style_for(Terminal())
    style.is_coloured = True
    paint = style.cells(1)
    assert (" Fail ", "\x1b[31m Fail \x1b[0m") == (paint(0, " Fail "), paint(1, " Fail "))
    assert "\x1b[40;32mID\x1b[0m" == style.header("ID")


def test_progress_counts_on_a_terminal_and_cleans_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The items pass through unchanged."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr("pyverno.cli.progress._EVERY_SECONDS", -1.0)
    assert [1, 2] == list(tracked([1, 2], 2, "resources"))
    assert "\r1/2 resources" in terminal.getvalue()
    assert terminal.getvalue().endswith("\r\x1b[K")
