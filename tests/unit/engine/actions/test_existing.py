"""Existing objects and their subresources, as rules read and change them."""

from __future__ import annotations

import pytest

from pyverno.engine.actions.existing import ExistingObjects
from pyverno.engine.broker import Broker
from pyverno.engine.result import ResourceRef
from pyverno.errors import EvaluationError
from pyverno.lang.runtime import Budget
from pyverno.offline.host import OfflineHost
from pyverno.offline.objects import ObjectStore

DEPLOYMENT = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"}}
SCALE = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "web", "namespace": "shop"}}
OWNER = ResourceRef("apps/v1", "Deployment", "shop", "web")


def objects(subresource="", *stored):
    """Return the Deployments of a small cluster."""
    host = OfflineHost(objects=ObjectStore(stored or (DEPLOYMENT, SCALE)))
    return ExistingObjects(Broker(host, Budget()), "apps/v1", "Deployment", subresource)


@pytest.mark.parametrize(("subresource", "document"), [("", DEPLOYMENT), ("status", DEPLOYMENT), ("scale", SCALE)])
def test_a_subresource_of_another_kind_is_read_by_itself(subresource, document):
    """A change of it is written through the object that it belongs to."""
    found = objects(subresource).get("shop", "web")
    assert (document, OWNER, subresource) == (found.document, found.owner, found.subresource)
    assert [found] == list(objects(subresource).of([DEPLOYMENT]))
    after = {**document, "spec": {}}
    effect = found.patched(after)
    assert (OWNER, document, after, subresource) == (effect.target, effect.before, effect.after, effect.subresource)


def test_what_is_gone_is_no_object():
    """An object that was listed may be gone when its subresource is read."""
    assert None is objects("scale", DEPLOYMENT).get("shop", "web")
    assert [] == list(objects("scale", DEPLOYMENT).of([DEPLOYMENT]))


def test_a_subresource_that_is_not_served_is_an_error():
    """It is never "no object"."""
    with pytest.raises(EvaluationError, match="no `sacle` of Deployment"):
        objects("sacle").get("shop", "web")
