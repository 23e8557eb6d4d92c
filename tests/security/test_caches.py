"""I9: caches keep names and small values, never what one request sent."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable, Iterator
from functools import _lru_cache_wrapper
from typing import Any

import pytest
import re2

from pyverno.cluster.channels import request_head
from pyverno.engine.match import IndexKey
from pyverno.engine.phases import VALIDATING
from pyverno.engine.policyset import PolicySet
from pyverno.kube.apply.fieldset import key_step
from pyverno.kube.apply.schematree import schema_tree_for
from pyverno.kube.gvk import GVK, parse_kind_selector
from pyverno.kube.imageref.globs import selecting
from pyverno.kube.imageref.reference import ImageReference
from pyverno.kube.names import MAX_NAME
from pyverno.kube.quantity import try_quantity
from pyverno.kube.schemas import schema_set
from pyverno.kube.semver import parse_range
from pyverno.kube.time.duration import try_duration
from pyverno.kube.time.golayout import chunks
from pyverno.kube.wildcard import match
from pyverno.lang.pattern.checks import compile_scalar
from pyverno.lang.pattern.leaf import literal_texts
from pyverno.webhook.routes import read_route
from tests.property.profile import examples
from tests.security.asking import CONFIG_MAP, ask, policy
from tests.support.objects import every_object

LARGE = 1 << 20
OWN = (
    "pyverno.kube.",
    "pyverno.engine.",
    "pyverno.lang.pattern.",
    "pyverno.webhook.",
    "pyverno.images.",
    "pyverno.cluster.",
)
CACHED: dict[str, Callable[[str], object]] = {
    "durations": lambda text: try_duration(f"{text}1h"),
    "key steps": lambda text: key_step({"name": text}),
    "image spellings": lambda text: selecting("a.example.com/*")(ImageReference(f"{text}.example.com", "a", "b")),
    "kinds": lambda text: parse_kind_selector(f"v1/{text}"),
    "layouts": chunks,
    "literals": literal_texts,
    "quantities": lambda text: try_quantity(f"1{text}"),
    "ranges": lambda text: parse_range(f">=1.0.0-a{text}"),
    "request lines": lambda text: request_head("GET", "https://api", f"/api/v1/{text}", ()),
    "routes": lambda text: read_route(f"/vpol/{text}"),
    "schemas": lambda text: schema_tree_for(schema_set(), GVK("", "v1", text)),
    "scalars": lambda text: compile_scalar(f"{text}*"),
    "wildcards": lambda text: match(f"{text}*", text),
}
RULE = """
validate:
  deny:
    conditions:
      any:
      - {key: "{{ request.object.data.a }}", operator: Equals, value: "{{ request.object.data.b }}"}
      - {key: "{{ request.object.data.a }}", operator: AnyIn, value: ["{{ request.object.data.b }}", "x*"]}
      - {key: "{{ request.object.data.c }}", operator: GreaterThan, value: 1h}
      - {key: "{{ request.object.data.c }}", operator: Equals, value: 1Gi}
      - {key: "{{ request.object.metadata.labels.* }}", operator: AllNotIn, value: "{{ request.object.data.* }}"}
"""
PATTERN = """
validate:
  pattern:
    metadata:
      labels:
        "{{ request.object.data.b }}*": "?*"
    data:
      a: "{{ request.object.data.b }} | 1-10 | !x"
      =(b): "?*"
      =(c): "<=1Gi"
"""


def caches() -> Iterator[Any]:
    """Yield every cache of functools that belongs to the package and has been loaded."""
    for found in every_object():
        if isinstance(found, _lru_cache_wrapper) and found.__wrapped__.__module__.startswith("pyverno."):
            yield found


def keys_of(cache: Any) -> Iterator[object]:
    for part in gc.get_referents(cache):
        if isinstance(part, dict) and "__wrapped__" not in part:
            yield from part


def longest_text(value: object, depth: int = 4) -> int:
    """Return the length of the longest text in a key: the key itself, or what it is made of."""
    if isinstance(value, (str, bytes)):
        return len(value)
    if depth == 0 or isinstance(value, type) or callable(value):
        return 0
    return max((longest_text(part, depth - 1) for part in gc.get_referents(value)), default=0)


def too_long() -> list[str]:
    # source that the package generates and texts of policies are no texts of requests
    names = [(f"{cache.__wrapped__.__module__}.{cache.__wrapped__.__qualname__}", cache) for cache in caches()]
    assert len(names) > 10
    return [
        name
        for name, cache in names
        if name.startswith(OWN) and any(longest_text(key) > MAX_NAME for key in keys_of(cache))
    ]


@pytest.mark.parametrize("name", CACHED)
def test_no_cache_keeps_a_text_that_is_longer_than_a_name(name: str) -> None:
    """A text of a name's length may be kept, a longer one is worked out each time."""
    for size in (10, MAX_NAME + 1, 5000):
        CACHED[name]("0" * size)
    assert [] == too_long()


def test_plans_are_not_kept_for_texts_that_are_no_names() -> None:
    """The plan for a kind or namespace of a megabyte is not cached."""
    policies = PolicySet()
    for kind, namespace in (("Pod", "n" * LARGE), ("K" * LARGE, "team"), ("Pod", "team")):
        policies.plan(VALIDATING, IndexKey(GVK("", "v1", kind), "", "CREATE", namespace))
    assert 1 == len(policies._memo)


@pytest.mark.parametrize("rule", [RULE, PATTERN], ids=["conditions", "pattern"])
def test_reviews_of_distinct_large_texts_leave_nothing_behind(rule: str) -> None:
    """Memory after many reviews of a megabyte each is no larger than after the first ones (300 in the nightly run)."""
    text = policy(rule)
    tracemalloc.start()
    try:
        for number in range(min(examples(12), 300)):
            large = f"{number:08}" + "x" * LARGE
            data = {"a": large, "b": f"y{large}", "c": f"1{large}"}
            labels = {"app": large}
            ask(text, {**CONFIG_MAP, "metadata": {**CONFIG_MAP["metadata"], "labels": labels}, "data": data})
            if number == 4:
                gc.collect()
                before = tracemalloc.get_traced_memory()[0]
        gc.collect()
        retained = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert retained < LARGE
    assert [] == too_long()


PATTERNS: dict[str, str] = {
    "jmespath": """
validate:
  message: "{{ regex_match(request.object.data.a, request.object.data.b) }}"
  deny: {}
""",
    "cel": """
validate:
  cel:
    expressions: [{expression: "!object.data.b.matches(object.data.a)"}]
""",
}


@pytest.mark.parametrize(("pattern", "count"), [("(a|b)*a(a|b){12}c{%d}", 80), (r"\pL{100}c{%d}", 12)])
@pytest.mark.parametrize("door", PATTERNS)
def test_regular_expressions_of_requests_leave_little_memory(door: str, pattern: str, count: int) -> None:
    """A pattern with the states of its searches may have 1 MiB, a large one 8 MiB: neither is kept in such numbers."""
    text = policy(PATTERNS[door])
    gc.collect()
    before = _memory_of_patterns()
    for number in range(count):
        ask(text, {**CONFIG_MAP, "data": {"a": pattern % (number + 1), "b": "abbab" * 20}})
    gc.collect()
    assert _memory_of_patterns() - before <= 64 << 20


def _memory_of_patterns() -> int:
    """Return how much memory the patterns that exist may take."""
    return sum(each.options.max_mem for each in every_object() if type(each) is re2._Regexp)
