"""Cells that many kinds have in common: parts of objects, ages, selectors, lists that are cut short."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta

from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.quantity import try_quantity

__all__ = [
    "age",
    "container_cells",
    "count",
    "flag",
    "human_duration",
    "joined",
    "labels_text",
    "moment",
    "name_of",
    "objects",
    "part",
    "quantity",
    "selector_text",
    "shortened",
    "since",
    "text",
]

UNKNOWN = "<unknown>"
NONE = "<none>"
UNSET = "<unset>"


def part(body: JSON, *path: str) -> JSON:
    """Return the value at a path of keys, None when it is missing.

    >>> part({"spec": {"replicas": 3}}, "spec", "replicas"), part({}, "spec", "replicas")
    (3, None)
    """
    for step in path:
        if not isinstance(body, dict):
            return None
        body = body.get(step)
    return body


def text(body: JSON, *path: str) -> str:
    """Return the text at a path, empty where there is none."""
    found = part(body, *path)
    return found if isinstance(found, str) else ""


def count(body: JSON, *path: str) -> int:
    """Return the integer at a path, 0 where there is none; of a list or a map, how many it holds."""
    found = part(body, *path)
    if isinstance(found, (list, dict)):
        return len(found)
    return found if isinstance(found, int) and not isinstance(found, bool) else 0


def flag(body: JSON, *path: str) -> bool:
    """Return whether a path holds true."""
    return part(body, *path) is True


def objects(body: JSON, *path: str) -> list[JSONObject]:
    """Return the objects in the list at a path."""
    found = part(body, *path)
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def name_of(body: JSONObject) -> str:
    """Return the name of an object."""
    return text(body, "metadata", "name")


def moment(value: JSON) -> datetime | None:
    """Read a time of an object; None where there is none, or none that can be read."""
    if not isinstance(value, str) or not value:
        return None
    try:
        read = datetime.fromisoformat(value)
    except ValueError:
        return None
    return read if read.tzinfo is not None else read.replace(tzinfo=UTC)


def since(value: JSON, now: datetime) -> str:
    """Write how long ago a time was, as people read it."""
    read = moment(value)
    return UNKNOWN if read is None else human_duration(now - read)


def age(body: JSONObject, now: datetime) -> str:
    """Write how old an object is."""
    return since(part(body, "metadata", "creationTimestamp"), now)


def human_duration(duration: timedelta) -> str:
    """Write a duration with two or three significant figures, as Kubernetes does.

    >>> [human_duration(timedelta(seconds=seconds)) for seconds in (-5, 90, 125, 4000, 30_000, 200_000, 10**8)]
    ['<invalid>', '90s', '2m5s', '66m', '8h', '2d7h', '3y62d']
    """
    seconds = int(duration.total_seconds())
    if seconds < 0:
        return "<invalid>" if seconds < -1 else "0s"
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86_400
    if seconds < 120:
        return f"{seconds}s"
    if minutes < 10:
        return _pair(minutes, "m", seconds % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _pair(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return _pair(days, "d", hours % 24, "h")
    if days < 2 * 365:
        return f"{days}d"
    if days < 8 * 365:
        return _pair(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def _pair(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"


def joined(parts: Iterable[str], separator: str = ",", empty: str = NONE) -> str:
    """Join texts, with a word for no text at all."""
    return separator.join(parts) or empty


def shortened(parts: list[str], kept: int, *, separator: str = ",", empty: str = NONE) -> str:
    """Join the first few texts and append the number of the others.

    >>> shortened(["a", "b", "c", "d", "e"], 3)
    'a,b,c + 2 more...'
    """
    if len(parts) > kept:
        return f"{separator.join(parts[:kept])} + {len(parts) - kept} more..."
    return joined(parts, separator, empty)


def labels_text(labels: JSON) -> str:
    """Write labels as `a=b,c=d`.

    >>> labels_text({"c": "d", "a": "b"}), labels_text({})
    ('a=b,c=d', '<none>')
    """
    return joined(f"{key}={value}" for key, value in sorted(labels.items())) if isinstance(labels, dict) else NONE


def selector_text(selector: JSON, empty: str = NONE) -> str:
    """Write a label selector as kubectl's users write it.

    >>> expression = {"key": "a", "operator": "In", "values": ["x"]}
    >>> selector_text({"matchLabels": {"b": "1"}, "matchExpressions": [expression]})
    'a in (x),b=1'
    """
    requirements = [(key, f"{key}={value}") for key, value in (part(selector, "matchLabels") or {}).items()]
    for expression in objects(selector, "matchExpressions"):
        requirements.append((text(expression, "key"), _requirement(expression)))
    return joined((written for _, written in sorted(requirements, key=lambda item: item[0])), empty=empty)


def _requirement(expression: JSONObject) -> str:
    key = text(expression, "key")
    values = ",".join(sorted(str(value) for value in part(expression, "values") or ()))
    match text(expression, "operator"):
        case "In":
            return f"{key} in ({values})"
        case "NotIn":
            return f"{key} notin ({values})"
        case "DoesNotExist":
            return f"!{key}"
        case _:
            return key


def container_cells(pod_spec: JSON) -> Iterator[str]:
    """Give the names of the containers of a pod, and their images."""
    containers = objects(pod_spec, "containers")
    yield ",".join(text(container, "name") for container in containers)
    yield ",".join(text(container, "image") for container in containers)


def quantity(value: JSON) -> str:
    """Write a quantity in its canonical form; none is zero."""
    if value is None:
        return "0"
    read = try_quantity(str(value))
    return str(value) if read is None else read.canonical()
