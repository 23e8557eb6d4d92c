"""Users see only what the API server lets them list."""

from __future__ import annotations

import asyncio

import pytest

from kubesandbox import Sandbox, Settings
from pyverno.cluster.access import load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.errors import HostError
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError
from pyverno.ui.access.access import Access
from pyverno.ui.access.identity import Identity
from pyverno.ui.access.rights import KubernetesRights
from pyverno.ui.store.scope import Scope

_GROUP = "rbac.authorization.k8s.io"


def _rule(resource: str) -> list[JSONObject]:
    return [{"apiGroups": ["wgpolicyk8s.io"], "resources": [resource], "verbs": ["list"]}]


async def _grant(client: Client) -> None:
    """Let ann list the reports of team-a, admins those of all namespaces, and auditors everything."""
    roles, bindings = GVR(_GROUP, "v1", "clusterroles"), GVR(_GROUP, "v1", "clusterrolebindings")
    local = GVR(_GROUP, "v1", "rolebindings")
    for resource in ("policyreports", "clusterpolicyreports"):
        await client.create(roles, {"metadata": {"name": resource}, "rules": _rule(resource)})
    for name, role in (
        ("admins", "policyreports"),
        ("auditors", "policyreports"),
        ("auditors", "clusterpolicyreports"),
    ):
        subject = {"kind": "Group", "name": name, "apiGroup": _GROUP}
        body = {"metadata": {"name": f"{name}-{role}"}, "subjects": [subject], "roleRef": _reference(role)}
        await client.create(bindings, body)
    for role in ("policyreports", "clusterpolicyreports"):  # rights of Kubernetes itself, which no login may have
        subject = {"kind": "User", "name": "system:admin", "apiGroup": _GROUP}
        body = {"metadata": {"name": f"admin-{role}"}, "subjects": [subject], "roleRef": _reference(role)}
        await client.create(bindings, body)
    subject = {"kind": "User", "name": "ann", "apiGroup": _GROUP}
    await client.create(
        local, {"metadata": {"name": "ann"}, "subjects": [subject], "roleRef": _reference("policyreports")}, "team-a"
    )


def _reference(role: str) -> JSONObject:
    return {"kind": "ClusterRole", "name": role, "apiGroup": _GROUP}


def scopes(*persons: Identity, user_prefix: str = "") -> list[Scope]:
    """Return what persons may look at in a cluster with results about three namespaces."""

    async def namespaces() -> list[str]:
        return ["team-a", "team-b", ""]

    async def play() -> list[Scope]:
        with Sandbox(Settings(controllers=False, namespaces=("team-a", "team-b"))) as sandbox:
            async with Client(load_kubeconfig(sandbox.kubeconfig, "", {}), qps=0) as client:
                await _grant(client)
                rights = KubernetesRights(client, namespaces, user_prefix=user_prefix)
                return [await rights.scope(each) for each in persons]

    return asyncio.run(play())


def test_rights_become_the_scope() -> None:
    """One namespace, all of them, all with cluster-scoped objects, none."""
    persons = (Identity("ann"), Identity("x", ("admins",)), Identity("x", ("auditors",)), Identity("x", ("others",)))
    assert [frozenset({"team-a"}), frozenset({"team-a", "team-b"}), None, frozenset()] == scopes(*persons)


def test_every_kind_of_reports_that_the_cluster_serves_is_asked() -> None:
    """Results of both kinds are in one store: whoever may list one of them only sees none."""

    class Serving:
        """A client of a cluster with both groups, whose users may list one."""

        async def request(self, _: str, path: str) -> JSONObject:
            names = ("policyreports", "clusterpolicyreports", "reports", "clusterreports")
            return {"resources": [{"name": name} for name in names if ("policy" in name) == ("wgpolicy" in path)]}

        async def create(self, _: GVR, body: JSONObject) -> JSONObject:
            return {"status": {"allowed": body["spec"]["resourceAttributes"]["group"] == "wgpolicyk8s.io"}}

    async def namespaces() -> list[str]:
        return ["team-a"]

    async def play() -> Scope:
        return await KubernetesRights(Serving(), namespaces).scope(Identity("ann"))  # type: ignore[arg-type]

    assert frozenset() == asyncio.run(play())


def test_a_decision_is_kept_for_a_moment_and_an_error_is_not() -> None:
    """A page asks the same again; an API server that does not decide shows nothing."""
    answers: list[bool | None] = [True, None, False]
    clock = [0.0]

    class Deciding:
        """A client that gives the answers in turn, None for no answer."""

        async def create(self, _: GVR, __: JSONObject) -> JSONObject:
            answer = answers.pop(0)
            if answer is None:
                raise StatusError(503, "ServiceUnavailable", "away")
            return {"status": {"allowed": answer}}

    async def namespaces() -> list[str]:
        return []

    async def play() -> list[bool]:
        rights = KubernetesRights(Deciding(), namespaces, now=lambda: clock[0])  # type: ignore[arg-type]
        access = Access("get", "", "v1", "pods", "", "a", "b")
        seen = [await rights.may(Identity("ann"), access), await rights.may(Identity("ann"), access)]
        clock[0] = 31.0
        with pytest.raises(HostError, match="cannot be read"):
            await rights.may(Identity("ann"), access)
        seen.append(await rights.may(Identity("ann"), access))
        assert not await rights.may(Identity("system:admin"), access)
        return seen

    assert [True, True, False] == asyncio.run(play())


def test_a_login_never_speaks_for_kubernetes_itself() -> None:
    """An issuer that lets people name themselves must not make them masters of the cluster."""
    persons = (Identity("x", ("system:masters",)), Identity("system:admin"), Identity("system:masters"))
    assert [frozenset()] * 3 == scopes(*persons)


def test_names_have_the_prefix_of_the_api_server() -> None:
    """`oidc:ann` is another user than `ann`."""
    assert [frozenset()] == scopes(Identity("ann"), user_prefix="oidc:")


def test_without_an_answer_nothing_is_shown() -> None:
    """If the API server does not answer, the pages show an error, never all results."""

    async def namespaces() -> list[str]:
        return []

    async def play() -> None:
        with Sandbox(Settings(controllers=False)) as sandbox:
            access = load_kubeconfig(sandbox.kubeconfig, "", {})
        async with Client(access, qps=0) as client:
            await KubernetesRights(client, namespaces).scope(Identity("ann"))

    with pytest.raises(HostError):
        asyncio.run(play())


def test_the_requests_of_a_page_ask_once() -> None:
    """A page makes many at once; each would ask about every namespace of the cluster."""
    asked = 0

    class Counting:
        """A client that allows everything but cluster reports, and counts."""

        async def request(self, _: str, path: str) -> JSONObject:
            return {"resources": [{"name": "policyreports"}, {"name": "clusterpolicyreports"}]} if "wg" in path else {}

        async def create(self, _: GVR, body: JSONObject) -> JSONObject:
            nonlocal asked
            asked += 1
            await asyncio.sleep(0)
            return {"status": {"allowed": bool(body["spec"]["resourceAttributes"].get("namespace"))}}

    async def namespaces() -> list[str]:
        return [f"n{number}" for number in range(50)]

    async def play() -> set[Scope]:
        rights = KubernetesRights(Counting(), namespaces)  # type: ignore[arg-type]  # has what is called
        return set(await asyncio.gather(*(rights.scope(Identity("ann")) for _ in range(20))))

    assert {frozenset(f"n{number}" for number in range(50))} == asyncio.run(play())
    assert 52 == asked


def test_requests_that_wait_together_fail_together_and_ask_again_later() -> None:
    """An answer that does not come is not kept."""
    fails = True

    class Failing:
        """A client whose cluster answers after a while."""

        async def request(self, _: str, path: str) -> JSONObject:
            return {"resources": [{"name": "policyreports"}, {"name": "clusterpolicyreports"}]} if "wg" in path else {}

        async def create(self, _: GVR, __: JSONObject) -> JSONObject:
            await asyncio.sleep(0)
            if fails:
                raise HostError("away")
            return {"status": {"allowed": True}}

    async def namespaces() -> list[str]:
        return ["a"]

    async def play() -> tuple[int, Scope]:
        nonlocal fails
        rights = KubernetesRights(Failing(), namespaces)  # type: ignore[arg-type]  # has what is called
        found = await asyncio.gather(*(rights.scope(Identity("ann")) for _ in range(3)), return_exceptions=True)
        fails = False
        return sum(isinstance(each, HostError) for each in found), await rights.scope(Identity("ann"))

    assert (3, None) == asyncio.run(play())
