"""Paths of the webhook: the policies that each of them selects."""

from __future__ import annotations

import pytest

from pyverno.engine.policyset import PolicySet
from pyverno.engine.rule import CompiledPolicy, Family, PolicyInfo
from pyverno.policy.kinds import Family as Kinds
from pyverno.policy.kinds import kinds_of
from pyverno.webhook.policies import Policies
from pyverno.webhook.routes import CEL_ROUTES, Route, WebhookType, read_route


def policy(name: str, *, kind: str = "ClusterPolicy", namespace: str = "", failure: str = "Fail") -> CompiledPolicy:
    """Return a policy without rules."""
    family = Family.CEL if kind in kinds_of(Kinds.CEL) else Family.RULES
    return CompiledPolicy(PolicyInfo(kind, "kyverno.io/v1", name, family, namespace, failure_policy=failure), ())


ALL = Policies(
    PolicySet(
        [
            policy("strict"),
            policy("lenient", failure="Ignore"),
            policy("own"),
            policy("own", kind="Policy", namespace="team"),
            policy("cel-a", kind="ValidatingPolicy"),
            policy("cel-b", kind="ValidatingPolicy", failure="Ignore"),
            policy("cel-a", kind="NamespacedValidatingPolicy", namespace="team"),
            policy("change", kind="MutatingPolicy"),
        ]
    ),
    own_paths=[("ClusterPolicy", "own"), ("Policy", "team/own")],
)

ASKED = [
    ("/validate", {"strict", "lenient"}),
    ("/mutate", {"strict", "lenient"}),
    ("/validate/fail", {"strict"}),
    ("/validate/ignore", {"lenient"}),
    ("/validate/fail/finegrained/own", {"own"}),
    ("/validate/fail/finegrained/team/own", {"team/own"}),
    ("/validate/ignore/finegrained/own", set()),
    ("/vpol/cel-a", {"cel-a"}),
    ("/vpol/cel-a/cel-b/gone", {"cel-a", "cel-b"}),
    ("/nvpol/cel-a", {"team/cel-a"}),
    ("/mpol/change", {"change"}),
    ("/mpol/cel-a", set()),
]


@pytest.mark.parametrize(("path", "keys"), ASKED)
def test_a_path_selects_its_policies(path: str, keys: set[str]) -> None:
    """No other policies are selected."""
    route = read_route(path)
    assert route is not None
    assert keys == {found.info.key for found in ALL.on(route).policies}
    assert path == route.path


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "",
        "/validate/",
        "/validate/other",
        "/validate/fail/finegrained",
        "/validate/fail/finegrained/",
        "/validate/fail/finegrained/a/b/c",
        "/vpol",
        "/vpol/",
        "/vpol//a",
        "/ivpol/other/a",
        "/dpol/a",
    ],
)
def test_other_paths_are_no_routes(path: str) -> None:
    """The response is 404, never "no policy"."""
    assert read_route(path) is None


def test_every_kind_that_admission_runs_has_its_paths() -> None:
    """Namespaced kinds are included: policies of a kind without a path would never be evaluated."""
    kinds = {kind for route in CEL_ROUTES.values() for kind in route.kinds}
    assert {
        f"{scope}{kind}Policy"
        for scope in ("", "Namespaced")
        for kind in ("Validating", "Mutating", "Generating", "ImageValidating")
    } == kinds


MISSING = [
    ("/vpol/cel-a/gone", "team", [("ValidatingPolicy", "", "gone")]),
    ("/nvpol/cel-a", "team", []),
    ("/nvpol/cel-a", "elsewhere", [("NamespacedValidatingPolicy", "elsewhere", "cel-a")]),
    ("/nvpol/gone", "", []),
    ("/mpol/cel-a", "", [("MutatingPolicy", "", "cel-a")]),
    ("/validate/fail/finegrained/own", "", []),
    ("/validate/fail/finegrained/team/own", "team", []),
    ("/mutate/fail/finegrained/team/gone", "team", [("Policy", "team", "gone")]),
    ("/validate/fail/finegrained/gone", "", [("ClusterPolicy", "", "gone")]),
    ("/validate/fail", "team", []),
]


@pytest.mark.parametrize(("path", "namespace", "expected"), MISSING)
def test_policies_that_a_path_names_and_the_store_lacks_are_missing(
    path: str, namespace: str, expected: list[tuple[str, str, str]]
) -> None:
    """Namespaced kinds are looked up in the namespace of the request."""
    route = read_route(path)
    assert route is not None
    assert (expected, expected) == (list(ALL.missing(route, namespace)), list(ALL.missing(route, namespace)))


def test_the_maker_of_the_set_may_know_further_policies() -> None:
    """It knows policies with a copy in the API server, and policies whose deletion it received."""
    route = read_route("/vpol/copied/deleted/late")
    assert route is not None
    policies = Policies(knows=lambda kind, namespace, name: name != "late")
    assert (("ValidatingPolicy", "", "late"),) == policies.missing(route)


def test_names_are_written_in_order() -> None:
    """Equal sets of policies have equal paths."""
    assert "/vpol/a/b" == CEL_ROUTES["/vpol"].with_names(("b", "a")).path
    assert Route(WebhookType.VALIDATE, frozenset({"ClusterPolicy", "Policy"}), "Ignore").path == "/validate/ignore"
