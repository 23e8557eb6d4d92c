"""Strategic merge patches as an API server applies them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pyverno.errors import PatchError
from pyverno.kube.json import JSONObject
from pyverno.kube.patch.strategicpatch import strategic_patch
from pyverno.kube.schemas import schema_set
from tests.support.operations import MOST_GROWTH, growth

SCHEMAS = schema_set("1.35")


def patched(document: JSONObject, patch: JSONObject, kind: tuple[str, str, str] = ("", "v1", "Pod")) -> JSONObject:
    """Return a patched object of a kind."""
    return strategic_patch(document, patch, schemas=SCHEMAS, definition=SCHEMAS.kinds[kind])


def pod(*names: str) -> JSONObject:
    """Return a pod with containers of these names."""
    return {"spec": {"containers": [{"name": name, "image": f"{name}:1"} for name in names]}}


def containers(body: JSONObject) -> list[str]:
    """Return the names of the containers."""
    return [item["name"] for item in body["spec"]["containers"]]


def test_lists_with_a_merge_key_merge_and_new_elements_come_first() -> None:
    """apimachinery puts what only the patch has before what only the object has."""
    after = patched(pod("a", "b"), {"spec": {"containers": [{"name": "c"}, {"name": "b", "image": "b:2"}]}})
    assert ["c", "a", "b"] == containers(after)
    assert "b:2" == after["spec"]["containers"][2]["image"]


def test_an_element_is_deleted_by_its_merge_key() -> None:
    """The directive is in the element."""
    after = patched(pod("a", "b"), {"spec": {"containers": [{"name": "a", "$patch": "delete"}]}})
    assert ["b"] == containers(after)


def test_a_list_is_replaced_by_an_element_with_the_directive() -> None:
    """All other elements of the patch are the new list."""
    after = patched(pod("a", "b"), {"spec": {"containers": [{"$patch": "replace"}, {"name": "z"}]}})
    assert ["z"] == containers(after)


def test_a_map_is_replaced_or_emptied_by_its_directive() -> None:
    """`replace` takes the patch as it is, `delete` leaves an empty map."""
    labels = {"metadata": {"labels": {"a": "1", "b": "2"}}}
    assert {"c": "3"} == patched(labels, {"metadata": {"labels": {"$patch": "replace", "c": "3"}}})["metadata"][
        "labels"
    ]
    assert {} == patched(labels, {"metadata": {"labels": {"$patch": "delete"}}})["metadata"]["labels"]


def test_null_deletes_and_is_never_kept() -> None:
    """Also inside content that is new."""
    after = patched({"metadata": {"labels": {"a": "1"}}}, {"metadata": {"labels": {"a": None}}, "spec": {"x": None}})
    assert {"metadata": {"labels": {}}, "spec": {}} == after


def test_retain_keys_drops_what_is_not_named() -> None:
    """The union of a Deployment's strategy changes as a whole."""
    before = {"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}}
    patch = {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}
    assert {"type": "Recreate"} == patched(before, patch, ("apps", "v1", "Deployment"))["spec"]["strategy"]


def test_the_order_directive_orders_what_it_names() -> None:
    """Others stay between their neighbours."""
    order = [{"name": "c"}, {"name": "a"}]
    after = patched(pod("a", "x", "c"), {"spec": {"$setElementOrder/containers": order, "containers": []}})
    assert {"c", "a", "x"} == {*containers(after)}
    assert containers(after).index("c") < containers(after).index("a")


def test_lists_of_scalars_merge_without_repeating() -> None:
    """Finalizers are such a list; the patch's come first, and elements can be taken out."""
    before = {"metadata": {"finalizers": ["a/1", "a/2"]}}
    assert ["a/3", "a/1", "a/2"] == patched(before, {"metadata": {"finalizers": ["a/3", "a/1"]}})["metadata"][
        "finalizers"
    ]
    gone = patched(before, {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a/1"]}})
    assert {"finalizers": ["a/2"]} == gone["metadata"]


def test_lists_without_a_strategy_are_replaced() -> None:
    """`args` has none."""
    before = {"spec": {"containers": [{"name": "a", "args": ["1", "2"]}]}}
    after = patched(before, {"spec": {"containers": [{"name": "a", "args": ["3"]}]}})
    assert ["3"] == after["spec"]["containers"][0]["args"]


def test_ports_merge_by_their_patch_key_alone() -> None:
    """The list map has two keys, the patch one."""
    before = {"spec": {"containers": [{"name": "a", "ports": [{"containerPort": 80, "protocol": "TCP"}]}]}}
    patch = {"spec": {"containers": [{"name": "a", "ports": [{"containerPort": 80, "name": "http"}]}]}}
    expected = [{"containerPort": 80, "protocol": "TCP", "name": "http"}]
    assert expected == patched(before, patch)["spec"]["containers"][0]["ports"]


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        ({"$patch": "foo"}, "unknown patch type"),
        ({"spec": {"containers": [{"image": "x"}]}}, "does not contain declared merge key: name"),
        ({"spec": {"containers": [{"name": "a"}, "b"]}}, "list element types are not identical"),
        ({"spec": {"$setElementOrder/containers": "x"}}, "must be a list"),
        (
            {"spec": {"$setElementOrder/containers": [{"name": "b"}], "containers": [{"name": "a"}]}},
            "doesn't match $setElementOrder list",
        ),
        ({"metadata": {"$retainKeys": ["x"], "name": "y"}}, "must contain all the fields"),
    ],
)
def test_patches_that_can_not_be_applied_are_refused(patch: JSONObject, message: str) -> None:
    """With a typed error."""
    with pytest.raises(PatchError) as caught:
        patched({"metadata": {"name": "p"}, **pod("a")}, patch)
    assert message in caught.value.message


def test_the_object_that_was_given_stays_as_it_is() -> None:
    """Patching makes a new value."""
    before = pod("a", "b")
    patched(before, {"spec": {"containers": [{"name": "a", "image": None}], "hostPID": True}})
    assert pod("a", "b") == before


@pytest.mark.parametrize("order", [1, -1])
def test_twice_the_elements_take_about_twice_the_work(order: int) -> None:
    """Elements, their order and what is deleted are found by their names."""

    def prepare(size: int) -> Callable[[], object]:
        names = [f"c{at}" for at in range(size)]
        changes = [*({"name": name, "image": "x"} for name in names[::order]), {"name": "c0", "$patch": "delete"}]
        patch = {
            "spec": {"containers": changes},
            "metadata": {"finalizers": names[::-1], "$deleteFromPrimitiveList/finalizers": names},
        }
        document = {"spec": {"containers": [{"name": name} for name in names]}, "metadata": {"finalizers": names}}
        schemas = schema_set("1.35")
        definition = schemas.kinds["", "v1", "Pod"]
        return lambda: strategic_patch(document, patch, schemas=schemas, definition=definition)

    assert growth(prepare, 60) < MOST_GROWTH
