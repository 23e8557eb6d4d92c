"""`python -m tests.parity.scan CORPUS`: each object of each suite by a background scan and by the command line.

The policies are those that scans evaluate; both doors have the same host, exceptions and namespaces. Fails when the
results that reports show differ.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from pyverno.cli.test.suite import Suite
from pyverno.controllers.reports.evaluation import Evaluator, ReportFilter, ScanContext
from pyverno.controllers.reports.plan import ScanPlan, make_plan
from pyverno.engine.match import IndexKey
from pyverno.engine.phases import SCAN
from pyverno.engine.request import Operation, Request
from pyverno.kube.json import JSONObject
from pyverno.kube.resource import Resource
from pyverno.report.policyreport import plain_result
from tests.parity.webhook import live_namespace, load_suites, suite_paths

__all__ = ["compare", "main"]

Items = list[str]


def compare(suite: Suite, left_out: Counter[str]) -> Iterator[tuple[str, Items, Items]]:
    """Yield each manifest of a suite with the items that the scan and the command line report of it."""
    found = suite.session
    plan = make_plan(found.policies, found.exceptions, found.kinds)
    if not plan.checks.policies:
        left_out["suites without a policy that is scanned"] += 1
        return
    evaluator = Evaluator(ReportFilter())
    for manifest in suite.manifests:
        asked = live_namespace(found.request(manifest, Operation.CREATE))
        info = found.kinds.find(asked.gvk)
        if info is None:
            left_out["objects of a kind that the suite's cluster does not serve"] += 1
            continue
        if not asked.user.is_empty or found.values.names_objects:
            left_out["objects of suites with a user, or with values for parts of objects"] += 1
            continue
        scanned = _scan(suite, plan, evaluator, asked)
        session = replace(found, policies=plan.checks.policies, exceptions=plan.exceptions, _engines={})
        if isinstance(asked.namespace_object, dict) and asked.gvk.kind != "Namespace":
            session.namespaces = {**found.namespaces, asked.namespace: asked.namespace_object}
        results = filter(ReportFilter().keeps, session.review(manifest, phases=SCAN).results)
        applied = _items(plain_result(result, 0) for result in results)
        yield f"{Resource(manifest).kind} {asked.namespace}/{asked.name}", scanned, applied


def _scan(suite: Suite, plan: ScanPlan, evaluator: Evaluator, asked: Request) -> Items:
    found, body = suite.session, asked.object
    info = found.kinds.find(asked.gvk)
    assert info is not None
    key = IndexKey(asked.gvk, "", "CREATE", asked.namespace, background=True, gvr=info.gvr)
    namespace = asked.namespace_object if isinstance(asked.namespace_object, dict) else None
    context = ScanContext(_without_mutations(plan), key, info.gvr, namespace, asked.settings)
    return _items(evaluator.evaluate(body, context, found.host).items(0))


def _without_mutations(plan: ScanPlan) -> ScanPlan:
    """Return the plan without the policies that mutate, which the command line applies."""
    return ScanPlan(plan.policies, plan.exceptions, plan.kinds, plan.checks, (), plan.by_key)


def _items(items: Iterable[JSONObject]) -> Items:
    return sorted(map(repr, items))


def main(arguments: Sequence[str]) -> int:
    """Compare the suites of a corpus; return 1 when the doors differ."""
    parser = argparse.ArgumentParser(prog="python -m tests.parity.scan")
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only every Nth suite")
    options = parser.parse_args(arguments)
    objects = results = differences = 0
    left_out: Counter[str] = Counter()
    for name, path in list(suite_paths(options.corpus))[:: options.every]:
        for suite in load_suites(path, left_out):
            for what, scanned, applied in compare(suite, left_out):
                objects, results = objects + 1, results + len(scanned)
                if scanned != applied:
                    differences += 1
                    both = Counter(scanned) & Counter(applied)
                    print(f"{name}: {what}")
                    for door, items in (("scan", scanned), ("apply", applied)):
                        print(f"  {door} only: {list((Counter(items) - both).elements())}")
    print(f"{objects} objects, {results} results, {differences} differences")
    for reason, count in sorted(left_out.items()):
        print(f"left out: {count} {reason}")
    return 1 if differences else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
