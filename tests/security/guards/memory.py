"""The guards of the memory of a review: no garbage that waits for a collection (L4)."""

from __future__ import annotations

from typing import Final

from tests.security.guards.guard import guard

__all__ = ["MEMORY"]

_RETAINED: Final = "tests/property/test_retained_memory.py"
_CASES: Final = f"{_RETAINED}::test_a_review_leaves_no_reference_cycle"
_ODD: Final = f"{_RETAINED}::test_reviews_of_odd_objects_leave_no_reference_cycle"
_REGISTRY: Final = f"{_RETAINED}::test_a_review_that_reads_a_registry_frees_its_object"

MEMORY: Final = (
    guard(
        "L4", "what is kept of an error of a variable is never raised", _CASES,
        ("engine/scope.py", "raise self._failures[name].copied() from error", "raise self._failures[name] from error"),
    ),
    guard(
        "L4", "the frame of an expression is emptied", f"{_CASES} {_ODD}",
        ("lang/cel/program.py", "            frame.clear()\n", "            pass\n"),
    ),
    guard(
        "L4", "variables do not hold their session", _CASES,
        ("engine/cel/session.py", "self._session = ref(session)", "self._session = lambda: session"),
    ),
    guard(
        "L4", "the host of images does not hold its session", f"{_REGISTRY}[signed-ImageValidatingPolicy]",
        ("engine/actions/cel/images.py", "WeakMethod(session.evaluate)", "lambda: session.evaluate"),
    ),
    guard(
        "L4", "an error of a registry is not raised where its loop keeps it",
        "tests/unit/test_loopthread.py::test_an_error_keeps_no_reference_to_its_caller",
        ("loopthread.py", "error = running.exception(self._seconds)",
         "running.result(self._seconds)\n            error = None"),
    ),
    guard(
        "L4", "an error of the cluster is not raised where its loop keeps it",
        "tests/unit/cluster/test_host.py::test_an_error_keeps_no_reference_to_its_review",
        ("cluster/host.py", "error = running.exception(limit)",
         "running.result(limit)\n                error = None"),
    ),
    guard(
        "L4", "garbage is collected before objects are set aside",
        "tests/unit/controllers/runtime/test_gctuning.py::test_garbage_is_collected_by_the_next_round",
        ("controllers/runtime/gctuning.py", "gc.collect()  # after a freeze", "pass  # after a freeze"),
    ),
    guard(
        "L4", "garbage that was set aside is bounded",
        "tests/unit/controllers/runtime/test_gctuning.py::test_garbage_that_was_frozen_is_bounded",
        ("controllers/runtime/gctuning.py", "grown > max(_MANY, known)", "False"),
    ),
)  # fmt: skip
