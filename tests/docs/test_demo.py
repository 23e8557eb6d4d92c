"""The scenes of `make demo` and what they need are there; the demo itself is not played here."""

from __future__ import annotations

import pytest
from scripts.demo_cluster import ROOT, SCENES, Act
from scripts.kubectl_stand_in import parser

ACTS = tuple(act for scene in SCENES for act in scene.acts)


@pytest.mark.parametrize("act", ACTS, ids=lambda act: " ".join(act.arguments[:4]))
def test_the_stand_in_for_kubectl_knows_every_command(act: Act) -> None:
    """The demo runs without kubectl, too, and every file that a command names exists."""
    read = parser().parse_args(act.arguments)
    assert act.arguments[0] == read.verb
    named = getattr(read, "file", "")
    assert not named or (ROOT / named).is_file()


def test_the_stand_in_refuses_other_commands() -> None:
    """A command that it cannot do ends it, instead of doing half of it."""
    with pytest.raises(SystemExit):
        parser().parse_args(["get", "deployments"])


def test_every_refusal_names_the_text_it_must_print() -> None:
    """A command that is to fail for one reason must not pass for having failed for another."""
    assert [] == [act for act in ACTS if not act.succeeds and not act.prints]
