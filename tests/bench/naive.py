"""A deliberately simple interpreter of validation patterns: the reference that the compiled tiers are held against.

It works the way the upstream engine does: every evaluation parses every anchor key, splits every operator and walks
both trees with exceptions as errors. It shares nothing with `pyverno.lang.pattern` but the leaves of `pyverno.kube`,
so that a mistake there is not made twice. It must never be made fast.
"""

from __future__ import annotations

import re

from pyverno.kube.json import JSON
from pyverno.kube.quantity import try_quantity
from pyverno.kube.time.duration import try_duration
from pyverno.kube.wildcard import has_wildcard, match

__all__ = ["naive_match"]

_ANCHOR = re.compile(r"([+<=X^])?\(([^\n]+)\)")
_IN_RANGE = re.compile(r"([-|+]?[0-9]+(?:\.[0-9]+)?[A-Za-z]*)-([-|+]?[0-9]+(?:\.[0-9]+)?[A-Za-z]*)")
_NOT_IN_RANGE = re.compile(r"([-|+]?[0-9]+(?:\.[0-9]+)?[A-Za-z]*)!-([-|+]?[0-9]+(?:\.[0-9]+)?[A-Za-z]*)")


class MismatchError(Exception):
    """An element does not match, at a path (None = no path)."""

    def __init__(self, text: str, path: str | None) -> None:
        super().__init__(text)
        self.path = path


class NegationError(MismatchError):
    """A key that must be absent is there."""


class ConditionError(MismatchError):
    """A condition or global anchor does not hold."""


class SkippedError(MismatchError):
    """Everything in a map or list was skipped."""


def naive_match(pattern: JSON, resource: JSON, *, float_numbers: bool = False) -> tuple[str, str, str]:
    """Match a resource against a pattern; return status, path and message."""
    seen: dict[str, bool] = {}
    if float_numbers:
        pattern = _floated(pattern)
    try:
        _element(resource, pattern, "/", seen)
    except (ConditionError, SkippedError) as error:
        return "skip", "", str(error)
    except NegationError as error:
        return "fail", error.path or "", str(error)
    except MismatchError as error:
        if error.path is None or not all(seen.values()):
            return "error", "", str(error)
        return "fail", error.path, str(error)
    return "pass", "", ""


def _floated(pattern: JSON) -> JSON:
    if isinstance(pattern, dict):
        return {key: _floated(value) for key, value in pattern.items()}
    if isinstance(pattern, list):
        return [_floated(item) for item in pattern]
    return float(pattern) if isinstance(pattern, int) and not isinstance(pattern, bool) else pattern


def _parse(key: str) -> tuple[str, str] | None:
    found = _ANCHOR.fullmatch(key.strip(" \t\n\r\v\f"))
    return (found[1] or "", found[2]) if found else None


def _kind(key: str) -> str | None:
    parsed = _parse(key)
    return parsed[0] if parsed else None


def _type(value: JSON) -> str:
    if value is None:
        return "<nil>"
    names = {dict: "map[string]interface {}", list: "[]interface {}", str: "string", bool: "bool", int: "int64"}
    return names.get(type(value), "float64")


def _element(resource: JSON, pattern: JSON, path: str, seen: dict[str, bool]) -> None:
    if isinstance(pattern, dict):
        if not isinstance(resource, dict):
            text = f"pattern and resource have different structures. Path: {path}. "
            raise MismatchError(f"{text}Expected {_type(pattern)}, found {_type(resource)}", path)
        _map(resource, list(pattern.items()), path, seen)
    elif isinstance(pattern, list):
        if not isinstance(resource, list):
            text = f"validation rule failed at path {path}, resource does not satisfy the expected overlay pattern"
            raise MismatchError(text, path)
        _list(resource, pattern, path, seen)
    else:
        for value in resource if isinstance(resource, list) else [resource]:
            if not _leaf(value, pattern):
                text = f"resource value does not match pattern at path {path}"
                raise MismatchError(text, path)


# --- maps -----------------------------------------------------------------------------------------------------------


def _map(resource: dict[str, JSON], pattern: list[tuple[str, JSON]], path: str, seen: dict[str, bool]) -> None:
    for key, _ in pattern:
        if _kind(key) in ("", "^") and not seen.get(key):
            seen[key] = _parse(key)[1] in resource
    pattern = sorted(_expanded(pattern, resource), key=lambda entry: entry[0])
    skips: list[MismatchError] = []
    applied = 0
    for key, value in pattern:
        if _kind(key) not in ("", "=", "^", "X"):
            continue
        try:
            _anchor(resource, key, value, path, seen)
            applied += 1
        except (ConditionError, SkippedError) as error:
            skips.append(error)
        except MismatchError:
            if not any(isinstance(skip, ConditionError) for skip in skips):
                raise
    if skips and (applied == 0 or any(isinstance(skip, ConditionError) for skip in skips)):
        raise SkippedError("; ".join(map(str, skips)), path)
    front: list[tuple[str, JSON]] = []
    back: list[tuple[str, JSON]] = []
    for key, value in pattern:
        if _kind(key) in ("", "=", "^", "X"):
            continue
        if _kind(key) == "<" or _has_anchors(value):
            front.insert(0, (key, value))
        else:
            back.append((key, value))
    for key, value in front + back:
        _anchor(resource, key, value, path, seen)


def _has_anchors(pattern: JSON) -> bool:
    if isinstance(pattern, Labels):
        return any(_kind(key) in ("", "=", "^", "X", "<") for key, _ in pattern)
    if isinstance(pattern, dict):
        own = any(_kind(key) in ("", "=", "^", "X", "<") for key in pattern)
        return own or any(_has_anchors(value) for value in pattern.values())
    return isinstance(pattern, list) and any(_has_anchors(value) for value in pattern)


class Labels(list):
    """The entries of a labels pattern after its keys were expanded."""


def _expanded(pattern: list[tuple[str, JSON]], resource: dict[str, JSON]) -> list[tuple[str, JSON]]:
    """Expand wildcard keys of metadata.labels and metadata.annotations; drop what is no text there."""
    metadata = resource.get("metadata")
    chosen = _find(dict(pattern), "metadata")
    expanded = []
    for key, value in pattern:
        inner = dict(value) if key == chosen and isinstance(value, dict) else value
        for tag in ("labels", "annotations") if inner is not value else ():
            tagged = _find(inner, tag)
            if tagged is not None and isinstance(inner[tagged], dict):
                labels = metadata.get(tag) if isinstance(metadata, dict) else None
                inner[tagged] = _expand_keys(inner[tagged], labels if isinstance(labels, dict) else {})
        expanded.append((key, inner))
    return expanded


def _find(pattern: dict[str, JSON], tag: str) -> str | None:
    if tag in pattern:
        return tag
    return next((key for key in sorted(pattern) if _parse(key) and _parse(key)[1] == tag), None)


def _expand_keys(pattern: dict[str, JSON], labels: dict[str, JSON]) -> Labels:
    entries, expanded = Labels(), []
    for key, value in pattern.items():
        if not isinstance(value, str):
            continue
        parsed = _parse(key)
        if has_wildcard(key):
            wildcard = parsed[1] if parsed else key
            found = [name for name, text in labels.items() if isinstance(text, str) and match(wildcard, name)]
            name = min(found, default=wildcard)
            expanded.append((f"{parsed[0]}({name})" if parsed else name, value))
        else:
            entries.append((key, value))
    entries.extend(expanded)  # of two entries for one key the one that is written without wildcard counts first
    return entries


def _anchor(resource: dict[str, JSON], key: str, pattern: JSON, path: str, seen: dict[str, bool]) -> None:
    parsed = _parse(key)
    if parsed is None or parsed[0] == "+":
        if pattern == "*":
            if resource.get(key) is None:
                raise MismatchError(f"{path}/{key} not found", path)
            return
        _value(resource.get(key), pattern, f"{path}{key}/", seen)
        return
    modifier, name = parsed
    here = f"{path}{name}/"
    if name not in resource:
        if modifier == "":
            text = "conditional anchor mismatch: conditional anchor key doesn't exist in the resource"
            raise ConditionError(text, here)
        return
    value = resource[name]
    if modifier == "X":
        raise NegationError(f"negation anchor matched in resource: {here} is not allowed", here)
    if modifier == "=":
        _value(value, pattern, here, seen)
    elif modifier == "^":
        _existence(value, pattern, here, seen)
    else:
        try:
            _value(value, pattern, here, seen)
        except MismatchError as error:
            prefix = "global" if modifier == "<" else "conditional"
            raise ConditionError(f"{prefix} anchor mismatch: {error}", error.path) from None


def _value(value: JSON, pattern: JSON, path: str, seen: dict[str, bool]) -> None:
    if isinstance(pattern, Labels):
        if not isinstance(value, dict):
            _element(value, {}, path, seen)
        _map(value, list(pattern), path, seen)
    else:
        _element(value, pattern, path, seen)


def _existence(value: JSON, pattern: JSON, path: str, seen: dict[str, bool]) -> None:
    if not isinstance(value, list):
        text = "Existence ^ () anchor can be used only on list/array type resource"
        raise MismatchError(f"invalid resource type {_type(value)}: {text}", path)
    if not isinstance(pattern, list) or isinstance(pattern, Labels):
        text = "Pattern has to be of list to compare against resource"
        found = {} if isinstance(pattern, Labels) else pattern
        raise MismatchError(f"invalid pattern type {_type(found)}: {text}", path)
    for wanted in pattern:
        if not isinstance(wanted, dict):
            text = "Pattern has to be of type map to compare against items in resource"
            raise MismatchError(f"invalid pattern type {_type(pattern)}: {text}", path)
        for index, item in enumerate(value):
            try:
                _element(item, wanted, f"{path}{index}/", seen)
                break
            except MismatchError:
                continue
        else:
            raise MismatchError(f"existence anchor validation failed at path {path}", path)


# --- lists ----------------------------------------------------------------------------------------------------------


def _list(resource: list[JSON], pattern: list[JSON], path: str, seen: dict[str, bool]) -> None:
    if not pattern:
        raise MismatchError("pattern Array empty", path)
    if isinstance(pattern[0], dict):
        pairs = [(item, pattern[0]) for item in resource]
    elif isinstance(pattern[0], list):
        if len(resource) < len(pattern):
            lengths = f"resource Array len is {len(resource)} and pattern Array len is {len(pattern)}"
            raise MismatchError(f"validate Array failed, array length mismatch, {lengths}", None)
        pairs = list(zip(resource, pattern, strict=False))
    else:
        _element(resource, pattern[0], path, seen)
        return
    applied = 0
    skips: list[MismatchError] = []
    for index, (item, wanted) in enumerate(pairs):
        try:
            _element(item, wanted, f"{path}{index}/", seen)
            applied += 1
        except (ConditionError, SkippedError) as error:
            skips.append(error)
    if skips and not applied:
        raise SkippedError("; ".join(map(str, skips)), path)


# --- leaves ---------------------------------------------------------------------------------------------------------


def _leaf(value: JSON, pattern: JSON) -> bool:
    if isinstance(pattern, bool):
        return isinstance(value, bool) and value == pattern
    if pattern is None:
        return value is None or value is False or (not isinstance(value, (dict, list)) and not value)
    if isinstance(pattern, str):
        return _text(value, pattern)
    if isinstance(value, bool):
        return False
    if isinstance(value, str):
        number = r"[+-]?[0-9]+" if isinstance(pattern, int) else r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"
        if not re.fullmatch(number, value):
            return False
        return (int(value) if isinstance(pattern, int) else float(value)) == pattern
    return isinstance(value, (int, float)) and value == pattern


def _text(value: JSON, pattern: str) -> bool:
    if isinstance(value, str) and value == pattern:
        return True
    return any(
        all(_condition(value, condition.strip(" ")) for condition in alternative.strip(" ").split("&"))
        for alternative in pattern.split("|")
    )


def _condition(value: JSON, pattern: str) -> bool:
    if len(pattern.encode()) >= 2:
        for operator in (">=", "<=", ">", "<", "!"):
            if pattern.startswith(operator):
                return _compare(value, operator, pattern[len(operator) :].strip())
        if found := _NOT_IN_RANGE.fullmatch(pattern):
            return _condition(value, f"< {found[1]}") or _condition(value, f"> {found[2]}")
        if found := _IN_RANGE.fullmatch(pattern):
            return _condition(value, f">= {found[1]}") and _condition(value, f"<= {found[2]}")
    return _compare(value, "", pattern.strip())


def _compare(value: JSON, operator: str, pattern: str) -> bool:
    text = _number(value)
    if text is not None:
        for parse in (try_duration, try_quantity):
            left, right = parse(text), parse(pattern)
            if left is not None and right is not None:
                order = (left > right) - (left < right)
                return {"": order == 0, "!": order != 0, ">": order > 0, "<": order < 0, ">=": order >= 0}.get(
                    operator, order <= 0
                )
    rendered = _rendered(value)
    if operator not in ("", "!") or rendered is None:
        return False
    return match(pattern, rendered) == (operator == "")


def _number(value: JSON) -> str | None:
    if value is None:
        return "0"
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return None
    return f"{value:f}" if isinstance(value, float) else str(value)


def _rendered(value: JSON) -> str | None:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        mantissa, exponent = f"{value:.17e}".split("e")
        for digits in range(18):
            short = f"{value:.{digits}e}"
            if float(short) == value:
                mantissa, exponent = short.split("e")
                break
        return f"{mantissa}E{exponent}"
    return str(value) if isinstance(value, (str, int)) else None
