"""Admission's view of the cluster."""

from __future__ import annotations

from kubesandbox.storage.store import Key, Store
from kubesandbox.types.resources import ResourceTable
from kubesandbox.view import StoreView
from tests.support.admissionstage import TABLE, config_map


def test_a_view_shows_the_store_and_the_types_of_now():
    """Types that are served later are visible, and the revision changes with them."""
    store, served = Store(), [ResourceTable([])]
    view = StoreView(store, lambda: served[-1], lambda _, body: body)
    before = view.changed_at("configmaps"), view.changed_at("pods")
    store.put(Key("configmaps", "x", "c"), config_map())
    assert before[0] < view.changed_at("configmaps")
    assert before[1] == view.changed_at("pods")
    assert view.get(Key("configmaps", "x", "c")) in view.all("configmaps", "x")
    assert [] == list(view.table)
    served.append(TABLE)
    assert view.table is TABLE
