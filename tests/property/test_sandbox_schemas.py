"""Laws of the sandbox's schemas: reading and defaulting are done once, whatever an object holds."""

from __future__ import annotations

from copy import deepcopy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from kubesandbox.defaults.walk import BuiltinDefaults
from kubesandbox.schema.checking import compile_check
from kubesandbox.schema.correlation import UNRELATED
from kubesandbox.schema.decoding import Decoders, schema_type
from kubesandbox.schema.pruning import compile_defaults, compile_pruning
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.schemas import schema_set
from pyverno.kube.status import StatusError
from tests.property.profile import examples

SCHEMAS = schema_set("1.35")
DECODERS = Decoders(SCHEMAS)
DEFAULTS = BuiltinDefaults(SCHEMAS)
CORE = "io.k8s.api.core.v1"
TYPES = (
    f"{CORE}.Pod",
    f"{CORE}.Service",
    f"{CORE}.Secret",
    f"{CORE}.LimitRange",
    "io.k8s.api.apps.v1.Deployment",
    "io.k8s.api.apps.v1.StatefulSet",
    "io.k8s.api.batch.v1.CronJob",
    "io.k8s.api.autoscaling.v2.HorizontalPodAutoscaler",
    "io.k8s.api.networking.v1.NetworkPolicy",
    "io.k8s.api.admissionregistration.v1.MutatingWebhookConfiguration",
)
SPECIAL: dict[str, SearchStrategy[JSON]] = {
    "Quantity": st.sampled_from(["1", "0.5", "1024Mi", 2, "1e3"]),
    "IntOrString": st.sampled_from([0, 80, "http", "25%"]),
    "Time": st.just("2024-01-02T03:04:05+01:00"),
    "MicroTime": st.just("2024-01-02T03:04:05.5Z"),
    "FieldsV1": st.just({"f:a": {}}),
    "RawExtension": st.just({"a": 1}),
}
SCALARS: dict[str, SearchStrategy[JSON]] = {
    "string": st.sampled_from(["", "a", "Always", "ClientIP", "NodePort", "None"]),
    "boolean": st.booleans(),
    "integer": st.integers(0, 3),
    "number": st.floats(0, 3),
}


def values(schema: JSONObject, depth: int) -> SearchStrategy[JSON]:
    """Values of a schema, null among them."""
    reference = str(schema.get("$ref", ""))
    if reference.rpartition(".")[2] in SPECIAL:
        return SPECIAL[reference.rpartition(".")[2]]
    if reference:
        return st.deferred(lambda: structs(reference, depth))
    kind = schema_type(schema)
    if kind == "array":
        return st.lists(values(schema["items"], depth), max_size=2)
    if kind == "object":
        inner = schema.get("additionalProperties")
        return st.dictionaries(st.sampled_from("ab"), values(inner, depth), max_size=2) if inner else st.just({})
    if schema.get("format") == "byte":
        return st.just("eA==")
    return st.none() | SCALARS.get(kind, st.none())


def structs(name: str, depth: int) -> SearchStrategy[JSONObject]:
    """Objects of a definition, with a few of its fields, and one that it does not know."""
    properties = SCHEMAS.definitions[name].get("properties", {})
    if depth == 0 or not properties:
        return st.just({})
    keys = st.lists(st.sampled_from([*properties, "zz"]), max_size=6, unique=True)
    return keys.flatmap(
        lambda chosen: st.fixed_dictionaries(
            {key: values(properties[key], depth - 1) if key in properties else st.just(1) for key in chosen}
        )
    )


@pytest.mark.parametrize("name", TYPES)
@settings(max_examples=min(examples(40), 1000))
@given(data=st.data())
def test_reading_and_defaulting_are_idempotent(name: str, data: st.DataObject) -> None:
    """Reading an object again changes nothing, defaults fill in once, and the input object stays unchanged."""
    body = data.draw(structs(name, 5))
    before = deepcopy(body)
    try:
        read = DECODERS.decode(name, "X", "v1", body)
    except StatusError:
        return
    assert before == body
    assert (read.body, ()) == (
        DECODERS.decode(name, "X", "v1", read.body).body,
        DECODERS.decode(name, "X", "v1", read.body).problems,
    )
    snapshot = deepcopy(read.body)
    filled = DEFAULTS.fill(name, read.body)
    assert snapshot == read.body
    assert filled == DEFAULTS.fill(name, filled)
    assert filled == DECODERS.decode(name, "X", "v1", filled).body


LEAVES: SearchStrategy[JSONObject] = st.sampled_from([
    {"type": "string"}, {"type": "integer", "default": 1}, {"type": "string", "nullable": True},
    {"type": "object", "x-kubernetes-preserve-unknown-fields": True}, {"x-kubernetes-int-or-string": True},
])  # fmt: skip
CUSTOM: SearchStrategy[JSONObject] = st.recursive(
    LEAVES,
    lambda inner: (
        st.dictionaries(st.sampled_from("abc"), inner, max_size=3).map(
            lambda properties: {"type": "object", "properties": properties, "default": {}}
        )
        | inner.map(lambda items: {"type": "array", "items": items})
        | inner.map(lambda items: {"type": "object", "additionalProperties": items})
    ),
    max_leaves=8,
)
DOCUMENTS: SearchStrategy[JSON] = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from("xy"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcd"), inner, max_size=4),
    max_leaves=12,
)


@given(schema=CUSTOM, value=DOCUMENTS)
def test_custom_resources_are_pruned_and_defaulted_once(schema: JSONObject, value: JSON) -> None:
    """Any document against any schema: no crash, the second time changes nothing."""
    problems: list[str] = []
    pruned = compile_pruning(schema)(value, None, problems)
    again: list[str] = []
    assert (pruned, []) == (compile_pruning(schema)(pruned, None, again), again)
    fill = compile_defaults(schema)
    filled = fill(pruned) if fill is not None else pruned
    if fill is not None:
        assert filled == fill(filled)
    compile_check(schema)(filled, UNRELATED, "x", [])
