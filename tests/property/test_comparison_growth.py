"""Comparing policies with each other costs about twice as much for twice as many of them.

`analyze` compares rules in pairs, of which there are four times as many: only so many are searched. The run of a pull
request counts calls of functions, with few pairs; the nightly run measures processor time, with as many as there are.
"""

from __future__ import annotations

import gc
import json
import os
import time
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path

import pytest

from pyverno.cli.equivalent.run import EquivalentOptions, run_equivalent
from pyverno.cli.impact.run import ImpactOptions, run_impact
from pyverno.compiler import compile_documents
from pyverno.compiler.analysis.checks import opposing_mutations
from pyverno.compiler.analysis.population import make_population
from pyverno.compiler.analysis.run import analyze
from pyverno.compiler.analysis.sampling import Sample
from pyverno.compiler.analysis.workspace import Workspace
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.yaml.documents import load_documents
from pyverno.offline.host import OfflineHost
from pyverno.offline.objects import ObjectStore
from tests.property.growth import calls_of

NIGHTLY = bool(os.environ.get("PYVERNO_NIGHTLY"))
SIZES = (60, 120, 240) if NIGHTLY else (8, 16, 32)
RATIO = 2.6 if NIGHTLY else 2.4
PAIRS = 30 if NIGHTLY else 4
"""Pairs that a check tries here: the sizes are beyond it."""

UNIT = 0.5 if NIGHTLY else 4000
"""Seconds, or calls, by which sizes may differ otherwise."""

Write = Callable[[int], JSON]


def _rule(number: int, kind: str, **action: JSON) -> JSONObject:
    """Return the policy of a number, of one rule."""
    match = {"any": [{"resources": {"kinds": [kind]}}]}
    rule = {"name": "r", "match": match, **action}
    off = {"pod-policies.kyverno.io/autogen-controllers": "none"}
    metadata = {"name": f"p{number}", "annotations": off}
    return {"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": metadata, "spec": {"rules": [rule]}}


def _requiring(pattern: Callable[[int], JSON], action: str = "Audit") -> Callable[[int], list[JSONObject]]:
    return lambda number: [
        _rule(number, "Pod", validate={"message": "m", "failureAction": action, "pattern": pattern(number)})
    ]


def _mutating(patch: Callable[[int], JSON]) -> Callable[[int], list[JSONObject]]:
    return lambda number: [_rule(number, "Pod", mutate={"patchStrategicMerge": patch(number)})]


def _labels(key: str, value: JSON) -> JSONObject:
    return {"metadata": {"labels": {key: value}}}


def _generating(number: int) -> list[JSONObject]:
    name = "{{ request.object.metadata.name }}-" + str(number)
    made = {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "namespace": "default", "data": {"data": {"a": "b"}}}
    policy = _rule(number, "ConfigMap", generate=made)
    policy["spec"]["rules"][0]["skipBackgroundRequests"] = False
    return [policy]


def _excepting(number: int) -> list[JSONObject]:
    exception = {
        "apiVersion": "kyverno.io/v2",
        "kind": "PolicyException",
        "metadata": {"name": f"e{number}", "namespace": "kyverno"},
        "spec": {
            "match": {"any": [{"resources": {"kinds": ["Pod"], "names": [f"z{number}"]}}]},
            "exceptions": [{"policyName": f"p{number}", "ruleNames": ["r"]}],
        },
    }
    return [*_requiring(lambda each: _labels(f"k{each}", "?*"))(number), exception]


SHAPES: Mapping[str, Callable[[int], list[JSONObject]]] = {
    "labels of their own": _requiring(lambda number: _labels(f"k{number}", "?*")),
    "the same label": _requiring(lambda _: _labels("app", "?*")),
    "values that exclude each other": _requiring(lambda number: _labels("app", f"v{number % 8}")),
    "one range in the other": _requiring(lambda number: {"spec": {"priority": f"<={number % 8}"}}),
    "mutations of their own labels": _mutating(lambda number: _labels(f"k{number}", "v")),
    "mutations of one label": _mutating(lambda number: _labels("app", f"v{number}")),
    "mutations and rules": lambda number: (
        _mutating(lambda _: _labels("app", f"w{number % 2}"))(number)
        if number % 2
        else _requiring(lambda _: _labels("app", f"v{number % 8}"))(number)
    ),
    "objects that are made again": _generating,
    "exceptions": _excepting,
}


def _objects() -> list[JSONObject]:
    """Return Pods and ConfigMaps of several labels and values."""
    found: list[JSONObject] = []
    for number in range(16):
        metadata = {"name": f"o{number}", "namespace": "default", "labels": {"app": f"v{number % 8}"}}
        containers = [{"name": "c", "image": "nginx:1"}]
        spec = {"containers": containers, "priority": number % 8}
        found += (
            {"apiVersion": "v1", "kind": "Pod", "metadata": {**metadata, **({} if number % 3 else {"labels": {}})}},
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {}},
        )
        found[-2]["spec"] = spec
    return found


def _documents(shape: str, size: int) -> list[JSONObject]:
    return [document for number in range(size) for document in SHAPES[shape](number)]


def _cost(work: Callable[[], object]) -> float:
    """Return what some work costs: calls, or in the nightly run the least processor time of some runs."""
    if not NIGHTLY:
        return calls_of(work)
    work()  # what is imported or compiled on first use
    best = float("inf")
    for _ in range(3):
        gc.collect()
        started = time.thread_time()
        work()
        best = min(best, time.thread_time() - started)
    return best


def _costs(work: Callable[[int], Callable[[], object]]) -> list[float]:
    """Return what each of the sizes costs."""
    work(2)()  # what is imported or compiled on first use
    return [_cost(work(size)) for size in SIZES]


def _assert_growth(costs: list[float]) -> None:
    steps = [after - before for before, after in pairwise(costs)]
    assert all(after <= RATIO * max(before, 0) + UNIT for before, after in pairwise(steps)), costs


@pytest.mark.parametrize("shape", SHAPES)
def test_an_analysis_grows_with_its_policies(shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The objects are the same; pairs beyond the limit are counted, and cost next to nothing."""
    monkeypatch.setattr(Sample, "take", _take_few(Sample.take))
    monkeypatch.setattr(opposing_mutations, "_MOST_PAIRS", PAIRS)
    objects = _objects()

    def work(size: int) -> Callable[[], object]:
        documents = _documents(shape, size)
        compilation = compile_documents(load_documents("---\n".join(json.dumps(each) + "\n" for each in documents)))
        assert () == compilation.errors

        def run() -> object:
            population = make_population(documents, objects, lambda body: body, count=0, seed=1)
            host_of = lambda bodies: OfflineHost(objects=ObjectStore(bodies))  # noqa: E731 - has no name of its own
            return [*analyze(Workspace(compilation, population, host_of))]

        return run

    _assert_growth(_costs(work))


def _take_few(take: Callable[..., bool]) -> Callable[..., bool]:
    return lambda sample, most=PAIRS: take(sample, min(most, PAIRS))


def _write(path: Path, documents: list[JSONObject]) -> str:
    path.write_text("---\n".join(json.dumps(each) + "\n" for each in documents))
    return str(path)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_comparison_of_two_sets_grows_with_their_policies(shape: str, tmp_path: Path) -> None:
    """Twice as many policies on both sides, and the same number of objects."""

    def work(size: int) -> Callable[[], object]:
        path = _write(tmp_path / f"{size}.yaml", _documents(shape, size))
        options = EquivalentOptions(old=path, new=path, objects=20)
        return lambda: run_equivalent(options)

    _assert_growth(_costs(work))


@pytest.mark.parametrize("shape", SHAPES)
def test_an_impact_grows_with_its_policies_and_objects(
    shape: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a set that takes effect where there was none, and on twice as many objects; and so does what it prints."""
    none = _write(tmp_path / "none.yaml", [_rule(0, "Secret", validate={"message": "m", "deny": {}})])

    def work(policies: int, objects: int) -> Callable[[], object]:
        new = _write(tmp_path / f"{policies}.yaml", _documents(shape, policies))
        bodies = [
            {**body, "metadata": {**body["metadata"], "name": f"o{number}"}}
            for number, body in enumerate(_objects()[:2] * objects)
        ]
        given = _write(tmp_path / f"objects-{objects}.yaml", bodies)
        options = ImpactOptions(old=(none,), new=(new,), resources=(given,), form="json")
        return lambda: run_impact(options)

    for pairs in ([(size, 1) for size in SIZES], [(2, size) for size in SIZES]):
        written: list[float] = []
        costs: list[float] = []
        work(2, 2)()  # what is imported or compiled on first use
        for pair in pairs:
            run = work(*pair)
            costs.append(_cost(run))
            capsys.readouterr()
            run()
            written.append(len(capsys.readouterr().out))
        _assert_growth(costs)
        _assert_growth(written)
