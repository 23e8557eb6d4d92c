"""The reason why a scenario fails."""

from __future__ import annotations

__all__ = ["ScenarioFailure"]


class ScenarioFailure(Exception):  # noqa: N818 - not an error of the runner: its text says what was expected
    """A step did not give the expected outcome."""
