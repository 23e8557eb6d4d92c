"""The broker: policies of a namespace see their namespace only, and every call is counted."""

from __future__ import annotations

import pytest

from pyverno.engine.broker import Broker
from pyverno.engine.host import HttpCall
from pyverno.engine.imagesource import ImageAccess, NoImages, SignatureQuery
from pyverno.errors import BudgetExceededError, EvaluationError, HostUnavailableError
from pyverno.images.verification.stored import SignatureForm, StoredSignature
from pyverno.lang.runtime import MAX_CALLS, Budget
from pyverno.offline.host import OfflineHost
from pyverno.offline.objects import ObjectStore


def config_map(namespace):
    """Return a ConfigMap named `settings`."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": namespace}}


def broker(namespace=""):
    """Return a broker for a policy of a namespace over two ConfigMaps."""
    host = OfflineHost(objects=ObjectStore([config_map("team"), config_map("other")]))
    return Broker(host, Budget(), namespace)


def test_a_cluster_policy_reads_every_namespace():
    """Its author may."""
    assert config_map("other") == broker().config_map("other", "settings")
    assert config_map("other") == broker().get_object("v1", "ConfigMap", "other", "settings")


@pytest.mark.parametrize(
    "ask",
    [
        lambda asking: asking.config_map("other", "settings"),
        lambda asking: asking.get_object("v1", "ConfigMap", "other", "settings"),
        lambda asking: asking.list_objects("v1", "ConfigMap", "other"),
        lambda asking: asking.list_objects("v1", "ConfigMap", ""),
        lambda asking: asking.get_object("rbac.authorization.k8s.io/v1", "ClusterRole", "team", "admin"),
        lambda asking: asking.list_objects("v1", "Node", "team"),
        lambda asking: asking.api_call("/api/v1/namespaces/other/configmaps"),
        lambda asking: asking.api_call("/api/v1/configmaps"),
        lambda asking: asking.api_call("/api/v1/namespaces/team"),
        lambda asking: asking.api_call("/api/v1/namespaces/team/configmaps", method="POST", body={}),
        lambda asking: asking.http_call(HttpCall("GET", "http://example.com")),
        lambda asking: asking.http_exchange(HttpCall("GET", "http://example.com")),
    ],
)
def test_a_policy_of_a_namespace_reads_nothing_outside_it(ask):
    """Each kind of lookup is refused, however its URL or target is written."""
    with pytest.raises(EvaluationError, match="a policy of namespace `team` may"):
        ask(broker("team"))


def test_a_policy_of_a_namespace_reads_its_own_objects():
    """Confinement is no ban."""
    own = broker("team")
    assert config_map("team") == own.config_map("team", "settings")
    assert [config_map("team")] == own.api_call("/api/v1/namespaces/team/configmaps")["items"]


def test_a_path_that_does_not_parse_is_an_evaluation_error():
    """The path that is checked is the one that is sent, so that it must be readable first."""
    with pytest.raises(EvaluationError):
        broker().api_call("/api/v1/../secrets")


def test_calls_are_counted_against_the_budget_of_the_review():
    """A rule over a long list cannot call the cluster without end."""
    asking = broker()
    for _ in range(MAX_CALLS):
        asking.config_map("team", "settings")
    with pytest.raises(BudgetExceededError):
        asking.config_map("team", "settings")


def test_what_the_host_lacks_is_an_error():
    """An offline run never answers with nothing instead."""
    with pytest.raises(HostUnavailableError):
        broker().global_entry("missing")


def test_a_policy_of_a_namespace_has_no_cloud_identity():
    """The login of the installation reads registries that the namespace may not."""
    access = ImageAccess({"providers": ["amazon"]})
    with pytest.raises(EvaluationError, match="may not use the cloud identity"):
        broker("team").resolve_images([("a.example.com/app:1", access)])


class SignedImages(NoImages):
    """An image source with one signature for each image."""

    def signatures(self, queries):
        return [(StoredSignature(each.form, b"x" * 6400, "", "", {}),) for each in queries]


class SignedHost(OfflineHost):
    """A Host with this image source."""

    @property
    def image_source(self):
        return SignedImages()


def test_signatures_count_as_read():
    """A review pays for their bytes by its steps, as for other bytes that it reads."""
    budget = Budget(steps=250)
    asking = Broker(SignedHost(objects=ObjectStore([])), budget)
    query = SignatureQuery("r.example.com/app", "sha256:" + "0" * 64, SignatureForm.BUNDLE, ImageAccess())
    asking.image_signatures([query, query])
    assert 50 == budget.steps
    with pytest.raises(BudgetExceededError):
        asking.image_signatures([query])
