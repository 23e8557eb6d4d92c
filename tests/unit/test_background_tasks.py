"""Every task that is started by hand has an observer: one that fails in silence ends its loop for good."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src"
STARTERS = frozenset({"create_task", "ensure_future"})

OBSERVED = {
    "pyverno/cli/controller/process.py:_run": "starts the task of `work`",
    "pyverno/cli/controller/process.py:work": "without its messages the parent replaces the process",
    "pyverno/cli/sandbox/run.py:_exec": "waits for both",
    "pyverno/cli/sandbox/run.py:_first": "waits for the first that ends, and raises its error",
    "pyverno/cluster/leases.py:run": "awaits both, raises the error of the work and logs that of the renewal",
    "pyverno/controllers/background/shards.py:_campaign": "awaits the term and raises its error",
    "pyverno/controllers/certificates/secrettls.py:open": "both loops catch what their rounds raise",
    "pyverno/controllers/cleanup/ttlwatches.py:follow": "an informer catches what a watch raises",
    "pyverno/controllers/runtime/process.py:_run": "the work is awaited; collections call nothing of ours",
    "pyverno/controllers/runtime/processgroup/peers.py:follow": "without beats the parent replaces the process",
    "pyverno/controllers/runtime/processgroup/processes.py:_run_one": "a process that is not heard counts as hanging",
    "pyverno/controllers/runtime/processgroup/processes.py:run": "waits for the first that ends, and raises its error",
    "pyverno/controllers/runtime/tasks.py:start": "a task that ends ends the controller",
    "pyverno/controllers/runtime/tasks.py:wait": "waits for both",
    "pyverno/controllers/state/globalcontext.py:_stop": "the task that ends an entry has nothing after it",
    "pyverno/controllers/state/globalentries.py:__init__": "both loops catch what their rounds raise",
    "pyverno/registry/cache.py:do": "all who ask await it",
    "pyverno/telemetry/otlp.py:__aenter__": "the loop catches what a round raises",
    "pyverno/telemetry/sharing.py:get": "all who ask await it",
    "pyverno/testing.py:_run_controller": "waits for it, and raises its error",
    "pyverno/testing.py:_run_further": "waits for them, and raises their errors",
    "pyverno/ui/access/rights.py:scope": "all who ask await it",
    "pyverno/ui/notifications/namespaces.py:_listed": "all who ask await it",
    "pyverno/ui/playground/workers.py:_prepare": "a process that does not start is started by the next request",
    "pyverno/ui/store/pool.py:ask": "is awaited; the callback gives the reader back",
}
"""Functions that start tasks outside of a TaskGroup, and who hears of their errors."""


def _started(path: Path) -> Iterator[str]:
    """Yield the functions of a module that start tasks, other than those of a group."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for node in ast.walk(function):
            is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
            if is_call and node.func.attr in STARTERS and ast.unparse(node.func.value) == "asyncio":
                yield f"{path.relative_to(SOURCE)}:{function.name}"


def test_every_task_outside_of_a_group_has_an_observer() -> None:
    """A new one is in a TaskGroup, or in `Tasks`, or here with the reason why its error is not lost."""
    found = {place for path in sorted((SOURCE / "pyverno").rglob("*.py")) for place in _started(path)}
    assert set() == found ^ OBSERVED.keys()
