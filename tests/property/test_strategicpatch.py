"""Kubernetes' strategic merge patch by index gives what the plain algorithm gives."""

from __future__ import annotations

import copy
from typing import Any

from pyverno.errors import PatchError
from pyverno.kube.json import JSON
from pyverno.kube.patch.strategicpatch import strategic_patch
from pyverno.kube.schemas import schema_set
from tests.property import inputs as st
from tests.property import naive_strategicpatch as naive
from tests.property.inputs import law

SCHEMAS = schema_set("1.35")
POD = SCHEMAS.kinds["", "v1", "Pod"]
NAMES = st.sampled_from(["a", "b", "c", "d", 1, 1.0, True, None, {"a": 1}, {"a": None}])
ELEMENTS = st.one_of(
    st.fixed_dictionaries({"name": st.sampled_from("abcde")}, optional={"image": st.sampled_from(["x", "y", None])}),
    st.fixed_dictionaries({}, optional={"name": NAMES, "$patch": st.sampled_from(["delete", "replace", "merge", "x"])}),
)
TEXTS = st.lists(st.sampled_from(["a", "b", "c", 1, True, 1.0]), max_size=6)
PODS = st.fixed_dictionaries(
    {},
    optional={
        "spec": st.fixed_dictionaries(
            {},
            optional={
                "containers": st.lists(ELEMENTS, max_size=6),
                "$setElementOrder/containers": st.lists(
                    st.fixed_dictionaries({"name": st.sampled_from("abcde")}), max_size=6
                ),
                "$retainKeys": st.lists(st.sampled_from(["containers", "nodeName"]), max_size=2),
                "nodeName": st.sampled_from(["n", None]),
            },
        ),
        "metadata": st.fixed_dictionaries(
            {}, optional={"finalizers": TEXTS, "$deleteFromPrimitiveList/finalizers": TEXTS}
        ),
    },
)


def outcome(patch: Any, document: JSON, change: JSON) -> str:
    try:
        return repr(patch(document, change, schemas=SCHEMAS, definition=POD))
    except PatchError as error:
        return error.message


@law(PODS, PODS, few=400)
def test_the_patch_by_index_is_the_plain_patch(document: JSON, change: JSON) -> None:
    """Results, their order and their errors are those of the plain algorithm, and no input is changed."""
    given = copy.deepcopy((document, change))
    assert outcome(naive.strategic_patch, document, change) == outcome(strategic_patch, document, change)
    assert given == (document, change)
