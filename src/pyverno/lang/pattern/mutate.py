"""Overlays of strategic merge mutation: anchors are decided against the resource, what remains is a plain patch.

`(k)` and `<(k)` state whether the patch (or a list element of it) applies, `+(k)` keeps k only where the resource has
none; `=( )`, `^( )` and `X( )` are plain keys here. A list element with anchors becomes one element per resource
element that fits, tied to it by name; where several fit the same resource element, the later ones are followers of the
first. This module must never merge the patch (see `kube.patch.strategicmerge`), and it works on a copy: neither overlay
nor resource is changed.
"""

from __future__ import annotations

from pyverno.errors import ExpressionError, PatchError
from pyverno.kube.json import JSON, JSONObject, encode, is_number
from pyverno.kube.meter import UNMETERED, Meter
from pyverno.lang.pattern.anchors import CONDITIONS, PATCHING, Anchor, Modifier, has_anchor_keys, parse_anchor
from pyverno.lang.pattern.leaf import as_float
from pyverno.lang.pattern.outcome import Status
from pyverno.lang.pattern.validate import Pattern, compile_pattern

__all__ = ["Followers", "Overlay", "compile_overlay"]

Followers = dict[int, tuple[JSONObject, list[JSON]]]
"""Elements of a patch by identity, each with the elements that change the same item of the resource after it."""

_ADD = frozenset({Modifier.ADD_IF_ABSENT})
_GLOBAL = frozenset({Modifier.GLOBAL})
_CONDITION = frozenset({Modifier.CONDITION})
_STEPS_PER_KEY = 2
_STEPS_PER_CONDITION = 5
_TOO_DEEP = "the overlay is nested too deeply"


class Overlay:
    """A compiled overlay; immutable and safe to share between threads."""

    __slots__ = ("_plain", "tree")

    def __init__(self, tree: JSON) -> None:
        self.tree = tree
        self._plain: tuple[JSON] | None = None
        if not has_anchor_keys(tree, PATCHING):
            pruned = _without_conditions(_copy(tree), {})
            self._plain = (tree if pruned == tree else pruned,)

    def resolve(self, resource: JSON, *, meter: Meter = UNMETERED, followers: Followers | None = None) -> JSON | None:
        """Return the plain patch for a resource; None when a condition keeps the patch from applying.

        `followers` collects what else changes an item that two elements of a list select: the patch holds the first.
        Raises PatchError when the overlay has a list of maps where the resource has a map or a scalar, and
        ExpressionError when the overlay is nested too deeply. Each list element of the overlay that has anchors is
        decided for each element of the resource, for which `meter` is charged.

        >>> compile_overlay({"metadata": {"labels": {"+(team)": "none"}}}).resolve({"metadata": {}})
        {'metadata': {'labels': {'team': 'none'}}}
        >>> compile_overlay({"(kind)": "Deployment", "spec": {"replicas": 2}}).resolve({"kind": "Pod"}) is None
        True
        """
        if self._plain is not None:
            return self._plain[0]
        try:
            patch = _copy(self.tree)
            decisions = _Decisions(meter, {} if followers is None else followers)
            _walk(patch, resource, decisions, present=True)
            return _without_conditions(patch, decisions.followers)
        except _ConditionError:
            return None
        except RecursionError:
            raise ExpressionError(_TOO_DEEP) from None


def compile_overlay(overlay: JSON) -> Overlay:
    """Compile an overlay, as under `mutate.patchStrategicMerge`.

    An overlay without any anchor resolves to the same patch for every resource. Raises ExpressionError when it is
    nested too deeply.

    >>> compile_overlay({"spec": {"replicas": 2}}).resolve({})
    {'spec': {'replicas': 2}}
    """
    try:
        return Overlay(overlay)
    except RecursionError:
        raise ExpressionError(_TOO_DEEP) from None


class _ConditionError(Exception):
    """A condition does not hold for the current element."""


class _GlobalConditionError(_ConditionError):
    """A global condition does not hold for the current element."""


class _MergedElement(dict[str, JSON]):
    """A patch element made for one resource element; a plain map once the patch is finished."""

    followers: tuple[JSONObject, ...] = ()


class _Added(dict[str, JSON]):
    """The value of a condition that had `+( )` keys: no condition any more, but a part of the patch."""


def _copy(value: JSON) -> JSON:
    """Copy maps and lists with sorted keys, the order in which the upstream engine sees them."""
    if isinstance(value, dict):
        copied = {key: _copy(value[key]) for key in sorted(value)}
        if isinstance(value, _MergedElement):
            made = _MergedElement(copied)
            made.followers = value.followers
            return made
        return _Added(copied) if isinstance(value, _Added) else copied
    return [_copy(item) for item in value] if isinstance(value, list) else value


# --- step 1: decide the anchors against the resource -----------------------------------------------------------------


def _walk(patch: JSON, resource: JSON, decisions: _Decisions, *, present: bool) -> None:
    """Decide the anchors of one patch element in place; `present` states whether the resource has the element."""
    # Kyverno does this in pkg/engine/mutate/patch, preProcessRecursive
    if isinstance(patch, dict):
        _walk_map(patch, resource, decisions)
    elif isinstance(patch, list) and patch and isinstance(patch[0], dict):
        _walk_list(patch, resource, decisions, present=present)


def _walk_map(patch: JSONObject, resource: JSON, decisions: _Decisions) -> None:
    decisions.meter.charge_steps(1 + _STEPS_PER_KEY * len(patch))
    fields = resource if isinstance(resource, dict) else {}
    _decide_additions(patch, fields)
    for modifiers, error in ((_GLOBAL, _GlobalConditionError), (_CONDITION, _ConditionError)):
        for anchor, text in _anchored_keys(patch, modifiers):
            if anchor.key not in fields:
                raise error
            # COMPAT: a condition with `+( )` keys right inside is not tested, it becomes a part of the patch
            if _decide_additions(patch[text], fields[anchor.key]):
                patch[text] = _Added(patch[text])
            elif not decisions.holds(patch[text], fields[anchor.key]):
                raise error
    for key in list(patch):
        plain = parse_anchor(key)
        if plain is None or plain.modifier not in PATCHING:
            _walk(patch[key], fields.get(key), decisions, present=key in fields)


def _anchored_keys(patch: JSON, modifiers: frozenset[Modifier]) -> list[tuple[Anchor, str]]:
    if not isinstance(patch, dict):
        return []
    anchored = ((parse_anchor(key), key) for key in patch)
    return [(anchor, key) for anchor, key in anchored if anchor is not None and anchor.modifier in modifiers]


def _decide_additions(patch: JSON, resource: JSON) -> bool:
    """Drop or unwrap the `+( )` keys of one map; return whether there were any."""
    additions = _anchored_keys(patch, _ADD)
    for anchor, text in additions:
        value = patch.pop(text)
        if not (isinstance(resource, dict) and anchor.key in resource):
            patch[anchor.key] = value
    return bool(additions)


class _Decisions:
    """The conditions of one resolution, each compiled once, what they may cost, and the followers of elements."""

    __slots__ = ("_compiled", "followers", "meter")

    def __init__(self, meter: Meter, followers: Followers) -> None:
        self.meter = meter
        self.followers = followers
        # Conditions by their identity; kept with them, so that no other value takes over their ids.
        self._compiled: dict[int, tuple[JSON, Pattern]] = {}

    def holds(self, condition: JSON, value: JSON) -> bool:
        self.meter.charge_steps(_STEPS_PER_CONDITION)
        found = self._compiled.get(id(condition))
        if found is None or found[0] is not condition:
            pattern = compile_pattern(_condition_value(condition, self.meter), float_numbers=True)
            found = self._compiled[id(condition)] = (condition, pattern)
        return found[1].match(_condition_value(value, self.meter), self.meter).status is Status.PASS


def _condition_value(value: JSON, meter: Meter) -> JSON:
    """Render a scalar as its text, and the numbers inside a map or list as floats, as the upstream engine does."""
    if isinstance(value, (dict, list)):
        return _with_floats(value, meter)
    return value if isinstance(value, str) else encode(value)


def _with_floats(value: JSON, meter: Meter) -> JSON:
    if isinstance(value, dict):
        meter.charge_steps(1 + len(value))
        return {key: _with_floats(item, meter) for key, item in value.items()}
    if isinstance(value, list):
        meter.charge_steps(1 + len(value))
        return [_with_floats(item, meter) for item in value]
    return as_float(value) if is_number(value) else value


def _walk_list(patch: list[JSON], resource: JSON, decisions: _Decisions, *, present: bool) -> None:
    if resource is not None and not isinstance(resource, list):
        raise PatchError("failed to preProcess rule: wrong node kind: expected SequenceNode")
    # Kyverno leaves what it made for one outer element in the copy that the next outer element gets; here it goes
    patch[:] = [element for element in patch if not isinstance(element, _MergedElement)]
    selected: dict[int, _MergedElement] = {}
    for element in list(patch):
        if not has_anchor_keys(element, PATCHING):
            continue
        # COMPAT: all resource elements share one copy, so `+( )` is decided by the first of them
        shared = _copy(element)
        if not present:
            _walk_absent(shared, decisions)
            continue
        for place, made in _fitted(shared, resource or [], decisions):
            first = selected.setdefault(place, made)
            if first is made:
                patch.append(made)
            else:
                first.followers += (made,)


def _fitted(shared: JSON, items: list[JSON], decisions: _Decisions) -> list[tuple[int, _MergedElement]]:
    """Return one patch element for each named resource element that meets the conditions, with the place of that."""
    is_gate = has_anchor_keys(shared, _GLOBAL)
    is_refused = False
    has_passed = False
    fitted: list[tuple[int, _MergedElement]] = []
    for place, item in enumerate(items):
        try:
            _walk(shared, item, decisions, present=True)
        except _GlobalConditionError:
            is_refused = True
        except _ConditionError:
            continue
        else:
            has_passed = has_passed or is_gate
            if not is_gate and (named := _make_named(shared, item, decisions.followers)) is not None:
                fitted.append((place, named))
    if is_refused and not has_passed:
        raise _GlobalConditionError
    return fitted


def _walk_absent(shared: JSON, decisions: _Decisions) -> None:
    try:
        _walk(shared, None, decisions, present=False)
    except _GlobalConditionError:
        raise
    except _ConditionError:
        return


def _make_named(shared: JSON, item: JSON, followers: Followers) -> _MergedElement | None:
    name = item.get("name") if isinstance(item, dict) else None
    if name is None or name in ({}, []):
        return None
    element = _copy(shared)
    return None if _delete_anchors(element, followers) else _MergedElement({**element, "name": _copy(name)})


# --- step 2: remove the conditions from the patch --------------------------------------------------------------------


def _without_conditions(patch: JSON, followers: Followers) -> JSON:
    # Kyverno does this in pkg/engine/mutate/patch, deleteConditionElements. There a condition on a map or list stays
    # as a part of the patch, and writes its wildcards into the resource; here what was tested goes.
    if isinstance(patch, dict):
        _delete_in_map(patch, followers)
    return patch


def _delete_anchors(node: JSON, followers: Followers) -> bool:
    """Remove the conditions below a node in place; return whether the node itself is to go."""
    if isinstance(node, dict):
        return _delete_in_map(node, followers)
    return isinstance(node, list) and _delete_in_list(node, followers)


def _delete_in_map(node: JSONObject, followers: Followers) -> bool:
    for anchor, text in _anchored_keys(node, CONDITIONS):
        condition = node.pop(text)
        if isinstance(condition, _Added):
            node[anchor.key] = dict(condition)
    for key in list(node):
        if _delete_anchors(node[key], followers):
            del node[key]
    return not node


def _delete_in_list(node: list[JSON], followers: Followers) -> bool:
    # Kyverno deletes by index while the list shrinks and so hits wrong elements; here exactly the anchored ones go
    kept = [
        _finish(element, followers) if isinstance(element, _MergedElement) else element
        for element in node
        if isinstance(element, _MergedElement)
        or not (has_anchor_keys(element, PATCHING) or _delete_anchors(element, followers))
    ]
    is_emptied = bool(node) and not kept
    node[:] = kept
    return is_emptied


def _finish(element: _MergedElement, followers: Followers) -> JSONObject:
    """Return a made element as a plain map, and note its followers under this map."""
    plain: JSONObject = dict(element)
    if element.followers:
        followers[id(plain)] = plain, [dict(each) for each in element.followers]
    return plain
