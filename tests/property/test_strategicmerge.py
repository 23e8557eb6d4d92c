"""Strategic merge by index gives what the plain algorithm gives, in a number of steps that the input bounds."""

from __future__ import annotations

import copy

from pyverno.errors import PatchError
from pyverno.kube.json import JSON
from pyverno.kube.patch.mergedlists import MergeMemory
from pyverno.kube.patch.strategicmerge import strategic_merge
from tests.property import inputs as st
from tests.property import naive_strategicmerge as naive
from tests.property.inputs import law

TEXTS = st.sampled_from(["a", "b", "80", "", "null", "true", None, 80, 81, True, 8.5, {}, [], ["a"], {"a": 1}])
DIRECTIVES = st.sampled_from(["replace", "delete", "merge", "replace", "other", None])
MAPS = st.dictionaries(
    st.sampled_from(["name", "image", "env", "tty", "containerPort", "protocol", "port"]), TEXTS, max_size=4
)
DIRECTED = st.fixed_dictionaries({"$patch": DIRECTIVES}, optional={"name": TEXTS, "containerPort": TEXTS})
ELEMENTS = st.one_of(MAPS, MAPS, MAPS, DIRECTED, TEXTS)
NAMED = st.fixed_dictionaries({"name": st.sampled_from("abcdef")}, optional={"image": TEXTS, "$patch": DIRECTIVES})
PORTS = st.fixed_dictionaries(
    {}, optional={"containerPort": st.integers(1, 4), "protocol": st.sampled_from(["TCP", "UDP", None, ""])}
)
LISTS = st.one_of(
    st.lists(ELEMENTS, max_size=7),
    st.lists(NAMED, max_size=7),
    st.lists(PORTS, max_size=9),
    st.lists(TEXTS, max_size=7),
)
PODS = st.fixed_dictionaries(
    {"apiVersion": st.just("v1"), "kind": st.just("Pod")},
    optional={
        "metadata": st.fixed_dictionaries({}, optional={"finalizers": LISTS, "ownerReferences": LISTS}),
        "spec": st.fixed_dictionaries(
            {},
            optional={
                "containers": st.one_of(
                    LISTS,
                    st.lists(
                        st.fixed_dictionaries(
                            {"name": st.sampled_from("abc"), "ports": LISTS}, optional={"env": LISTS}
                        ),
                        max_size=3,
                    ),
                ),
                "topologySpreadConstraints": st.lists(
                    st.dictionaries(st.sampled_from(["topologyKey", "whenUnsatisfiable"]), TEXTS, max_size=2),
                    max_size=7,
                ),
                "tolerations": LISTS,
            },
        ),
    },
)


def outcome(merge: object, document: JSON, patch: JSON) -> JSON:
    try:
        return repr(merge(document, patch))  # type: ignore[operator]  # repr distinguishes 1, 1.0, True and orders of keys
    except PatchError as error:
        return error.message


@law(PODS, PODS, few=400)
def test_the_merge_by_index_is_the_plain_merge(document: JSON, patch: JSON) -> None:
    """Results, their order and their errors are those of the plain algorithm, and no input is changed."""
    given = copy.deepcopy((document, patch))
    assert outcome(naive.strategic_merge, document, patch) == outcome(strategic_merge, document, patch)
    assert given == (document, patch)


@law(PODS, few=100)
def test_merging_a_document_with_itself_is_the_plain_merge(document: JSON) -> None:
    """Lists of the document and of the patch are the same object here."""
    assert outcome(naive.strategic_merge, document, document) == outcome(strategic_merge, document, document)


@law(PODS, st.lists(PODS, max_size=4), few=200)
def test_a_chain_of_merges_with_a_memory_is_the_chain_without(document: JSON, patches: list[JSON]) -> None:
    """The memory's knowledge of lists stays correct after any earlier merges."""
    memory = MergeMemory()
    plain, remembered = document, document
    for patch in patches:
        try:
            plain = naive.strategic_merge(plain, patch)
        except PatchError:
            continue
        remembered = strategic_merge(remembered, patch, memory=memory)
        assert repr(plain) == repr(remembered)
