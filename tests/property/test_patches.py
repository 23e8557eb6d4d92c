"""Laws of patches: a created patch applies, and no input is changed."""

from __future__ import annotations

import contextlib
import copy

from pyverno.errors import PatchError
from pyverno.kube.json import JSON, equal
from pyverno.kube.patch.jsondiff import create_patch
from pyverno.kube.patch.jsonpatch import apply_patch
from pyverno.kube.patch.mergepatch import apply_merge_patch, create_merge_patch
from pyverno.kube.patch.strategicmerge import strategic_merge
from tests.property import inputs as st
from tests.property.inputs import law

KEYS = st.sampled_from(["a", "b", "c/d", "e~f", "0", "name", "spec", "containers", "$patch", ""])
SCALARS = st.one_of(st.booleans(), st.integers(0, 3), st.sampled_from([0.5, 1.0, "x", "delete", "replace"]))
VALUES = st.recursive(
    st.one_of(st.none(), SCALARS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=3)),
    max_leaves=10,
)
# Values in which null does not occur: a merge patch cannot express it.
SOLID = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=3)),
    max_leaves=10,
)
OBJECTS = st.dictionaries(KEYS, VALUES, max_size=4)
STEPS = st.sampled_from(["a", "b", "c~1d", "e~0f", "0", "1", "-", "-1", "name"])
PATHS = st.lists(STEPS, max_size=3).map(lambda steps: "".join(f"/{step}" for step in steps))
OPERATIONS = st.fixed_dictionaries(
    {
        "op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test"]),
        "path": PATHS,
        "from": PATHS,
        "value": VALUES,
    }
)


@law(VALUES, VALUES, few=200)
def test_created_json_patch_applies(before: JSON, after: JSON) -> None:
    """apply(create(a, b), a) == b."""
    operations = create_patch(before, after)
    if any(operation["path"] == "" and not isinstance(after, dict | list) for operation in operations):
        return  # the whole document can only become an object or a list
    assert equal(after, apply_patch(before, operations))


@law(SOLID, SOLID, few=200)
def test_created_merge_patch_applies(before: JSON, after: JSON) -> None:
    """apply(create(a, b), a) == b for values without null."""
    assert equal(after, apply_merge_patch(before, create_merge_patch(before, after)))


@law(OBJECTS, st.lists(OPERATIONS, max_size=4), st.booleans(), few=200)
def test_patching_never_changes_its_input(document: JSON, operations: list[JSON], lenient: bool) -> None:
    """A patch applies or raises PatchError, and the document and the operations stay as they were."""
    before = copy.deepcopy((document, operations))
    with contextlib.suppress(PatchError):
        apply_patch(document, operations, allow_missing_remove=lenient, create_parents=lenient)
    assert before == (document, operations)


@law(OBJECTS, OBJECTS, few=200)
def test_strategic_merge_never_changes_its_input(document: JSON, patch: JSON) -> None:
    """A strategic merge applies or raises PatchError, and an empty one gives the document."""
    pod = {**document, "apiVersion": "v1", "kind": "Pod"}
    before = copy.deepcopy((pod, patch))
    with contextlib.suppress(PatchError):
        strategic_merge(pod, patch)
    assert before == (pod, patch)
    assert pod == strategic_merge(pod, {})
