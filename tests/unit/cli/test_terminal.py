"""Stdout and stderr: what a person, a CI system and a pipe get."""

from __future__ import annotations

import io
import sys

import pytest

from pyverno.cli.terminal import STDERR, STDOUT, Terminal, terminal_of


class _Screen(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        return True


def test_output_has_visible_escapes(capsys: pytest.CaptureFixture[str]) -> None:
    """On both streams, whatever they are at the time of the call."""
    STDOUT.writelines(["a\x1b[2J\n", "::error::b\n"])
    STDERR.write("c\x07 ü\n")
    assert ("a\\x1b[2J\n\\::error::b\n", "c\\x07 ü\n") == capsys.readouterr()


def test_colours_are_for_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipe gets the escapes of nothing."""
    for stream, shown in ((_Screen(), "\x1b[31mFail\x1b[0m"), (io.StringIO(), r"\x1b[31mFail\x1b[0m")):
        monkeypatch.setattr(sys, "stdout", stream)
        STDOUT.write("\x1b[31mFail\x1b[0m")
        assert shown == stream.getvalue()


def test_a_format_of_commands_keeps_them(capsys: pytest.CaptureFixture[str]) -> None:
    """Their writers have encoded every value; lines of CSV keep their ends."""
    terminal_of(STDOUT, "github").write("::error title=a::b\n")
    Terminal("stdout", "csv").write("a,b\r\n")
    STDOUT.of("text").write("::error title=a::b\n")
    assert "::error title=a::b\na,b\r\n\\::error title=a::b\n" == capsys.readouterr().out
