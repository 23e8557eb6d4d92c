"""Parts of requests that the API server confirms."""

from __future__ import annotations

from pyverno.controllers.background.work import part_of
from pyverno.controllers.evidence import Refuted, Unprovable
from pyverno.engine.request import Operation, Request
from pyverno.kube.json import JSONObject

REFERENCE: JSONObject = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a", "namespace": "team"}}
WHOLE: JSONObject = {**REFERENCE, "data": {"key": "dmFsdWU="}}


def deletion() -> Unprovable:
    """Return a deletion that the history of the API server does not show any more."""
    return Unprovable("gone", Request.from_manifest(REFERENCE, old=REFERENCE, operation=Operation.DELETE))


def test_a_kept_object_stands_for_the_history() -> None:
    """The admission controller stored it in a Secret when the request came, and rules see all of it."""
    found = part_of(deletion(), reads_old=True, kept=WHOLE)
    assert isinstance(found, Request)
    assert (None, WHOLE) == (found.object, found.old)


def test_without_it_a_deletion_that_cannot_be_shown_is_refused() -> None:
    """What an UpdateRequest says of its object is a reference, and no proof."""
    assert isinstance(part_of(deletion(), reads_old=False), Refuted)
