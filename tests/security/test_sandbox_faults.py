"""F4, I11 in the sandbox: a bug in the admission chain refuses the request; no denial becomes an admission.

Every function of `kubesandbox.admission` that a request passes fails once and always.
"""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path

import pytest

from kubesandbox.attributes import Attributes
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError
from tests.security.faultsites import Sites, modules_of, sampled
from tests.support.admissionstage import (
    admission,
    admitted,
    answer,
    cluster,
    config_map,
    configuration,
    patching,
    request,
    serving,
    webhook,
)

GROUP = "admissionregistration.k8s.io/v1"
RULES = {
    "resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]
}


def validating(name: str, expression: str, failure_policy: str, **spec: object) -> list[JSONObject]:
    """Return a ValidatingAdmissionPolicy with its binding."""
    body = {
        "failurePolicy": failure_policy,
        "matchConstraints": RULES,
        "validations": [{"expression": expression}],
        **spec,
    }
    binding = {"policyName": name, "validationActions": ["Deny"]}
    return [
        {"apiVersion": GROUP, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name}, "spec": body},
        {"apiVersion": GROUP, "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": name}, "spec": binding},
    ]


BETA = "admissionregistration.k8s.io/v1beta1"
MUTATING: list[JSONObject] = [
    {
        "apiVersion": BETA,
        "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": "label"},
        "spec": {
            "failurePolicy": "Ignore",
            "matchConstraints": RULES,
            "reinvocationPolicy": "Never",
            "mutations": [
                {
                    "patchType": "ApplyConfiguration",
                    "applyConfiguration": {
                        "expression": 'Object{metadata: Object.metadata{labels: {"a": "b"}}}',
                    },
                }
            ],
        },
    },
    {
        "apiVersion": BETA,
        "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": "label"},
        "spec": {"policyName": "label"},
    },
]
CONDITIONS = {"matchConditions": [{"name": "always", "expression": "object.metadata.name != 'zz'"}]}
POLICIES = [
    *validating("one", "variables.a != 'bad'", "Ignore", variables=[{"name": "a", "expression": "object.data.a"}]),
    *validating("two", "object.data.a != 'worse'", "Fail", **CONDITIONS),
    *MUTATING,
]


class OddError(KeyError):
    """An exception of a type that the code does not know."""


async def _outcome(chain: object, attributes: Attributes) -> JSONObject | str:
    """Return the admitted object, or why it was refused."""
    try:
        return await admitted(chain, attributes) or {}  # type: ignore[arg-type]
    except StatusError as error:
        return f"{error.status} {error.message}"
    except Exception as error:  # the HTTP server answers 500
        return f"500 {type(error).__name__}"


async def _thrown(folder: Path, sites: Sites) -> tuple[dict[str, str], int, set[str]]:
    problems: dict[str, str] = {}
    count, reached = 0, set()
    replies = {"allow": answer, "label": patching({"op": "add", "path": "/metadata/annotations", "value": {"c": "d"}})}
    async with serving(folder, **replies) as served:
        hooks = [
            configuration("Validating", webhook(served.client("allow"), failurePolicy="Ignore", **CONDITIONS)),
            configuration("Mutating", webhook(served.client("label"), failurePolicy="Ignore", **CONDITIONS)),
        ]
        for data in ("bad", "worse", "good"):
            _, view = cluster(*POLICIES, *hooks)
            attributes = request(config_map(data={"a": data}))
            chain = admission(view)
            sites.calls, sites.is_counting = {}, True
            usual = await _outcome(chain, attributes)
            sites.is_counting = False
            assert isinstance(usual, str) is (data != "good"), usual
            reached |= sites.calls.keys()
            for site in sampled(sites.calls, 40):
                for always in (False, True):
                    chain = admission(view)
                    sites.arm(site, OddError, always=always)
                    found = await _outcome(chain, attributes)
                    sites.disarm()
                    count += sites.thrown
                    if isinstance(found, str):
                        continue
                    if isinstance(usual, str):
                        problems[f"{data}: {site}"] = "a denial became an admission"
                    elif found != usual:
                        problems[f"{data}: {site}"] = f"it was admitted as {found}"
    return problems, count, reached


# a connection whose end fails stays open until it is collected
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_bug_in_the_admission_chain_never_admits(tmp_path: Path) -> None:
    """Nor does it admit an object with some of its changes; the request is refused, or judged as before."""
    rooms = ("kubesandbox.admission.policies", "kubesandbox.admission.webhooks", "kubesandbox.admission.matching")
    sites = Sites(
        modules=lambda: modules_of(*rooms, "kubesandbox.admission.chain"),
        owners=(),
        accepts=lambda site: not site.startswith(("pyverno.value.", "pyverno.lazyregex.")),
    )
    with sites.installed():
        problems, count, reached = asyncio.run(_thrown(tmp_path, sites))
    gc.collect()
    assert {} == problems
    assert count >= 150
    assert [] == [room for room in rooms if not any(site.startswith(room) for site in reached)]


@pytest.mark.parametrize("failure_policy", ["Ignore", "Fail"])
def test_an_error_of_one_policy_leaves_the_denial_of_another(failure_policy: str) -> None:
    """Of the API server's own kinds: errors in matchConditions, variables and validations."""
    broken = [
        validating("broken", "object.data.nothing == 'x'", failure_policy),
        validating(
            "broken",
            "variables.v == 'x'",
            failure_policy,
            variables=[{"name": "v", "expression": "object.data.nothing"}],
        ),
        validating(
            "broken",
            "true",
            failure_policy,
            matchConditions=[{"name": "c", "expression": "object.data.nothing == 'x'"}],
        ),
    ]
    for policies in broken:
        _, view = cluster(*policies, *validating("deny", "object.data.a != 'bad'", failure_policy))
        denied = asyncio.run(_outcome(admission(view), request(config_map(data={"a": "bad"}))))
        assert isinstance(denied, str)
        twin = asyncio.run(_outcome(admission(view), request(config_map(data={"a": "good"}))))
        assert isinstance(twin, str) is (failure_policy == "Fail")
