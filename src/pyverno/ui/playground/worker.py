"""The process that reviews visitors' texts: `python -m pyverno.ui.playground.worker`.

A request has one key, the name of a task, and its body. Requests and answers are JSON, each after its length, on the
standard streams; an empty answer comes first, when everything is loaded. Limits of memory and CPU time are set before
the first request; a request that exceeds them ends this process, never the server.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import BinaryIO, Final

import orjson

from pyverno.errors import PyvernoError
from pyverno.kube.json import JSON, JSONObject

# trust rows: own-process

__all__ = ["LENGTH_BYTES", "Task", "answer", "main"]

Task = Callable[[JSONObject], JSONObject]

LENGTH_BYTES: Final = 4
"""Bytes of the length before a message, big-endian."""

_MEMORY_BYTES: Final = 1024 * 1024 * 1024
_CPU_SECONDS: Final = 300
_FILES: Final = 64


def main() -> None:
    """Answer requests until standard input ends."""
    _limit()
    source, target = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr  # output of libraries must not mix with the messages
    from pyverno.ui.authoring.suggestions import complete, hover
    from pyverno.ui.playground.importing import import_text
    from pyverno.ui.playground.review import review_texts

    tasks: Mapping[str, Task] = {
        "import": lambda body: import_text(body["text"]),
        "complete": complete,
        "hover": hover,
        "review": review_texts,
    }

    target.write(bytes(LENGTH_BYTES))
    target.flush()
    while (request := _read(source)) is not None:
        body = answer(tasks, request)
        target.write(len(body).to_bytes(LENGTH_BYTES, "big") + body)
        target.flush()


def answer(tasks: Mapping[str, Task], request: JSONObject) -> bytes:
    """Return the JSON of a task's answer; whatever goes wrong, that it cannot be written too, is an error.

    >>> answer({"twice": lambda body: {"is": 2 * body["of"]}}, {"twice": {"of": 2}})
    b'{"answer":{"is":4}}'
    """
    try:
        ((task, body),) = request.items()
        return _written({"answer": tasks[task](body)})
    except PyvernoError as error:
        return _written({"error": str(error).encode("utf-8", "replace").decode()})
    except (RecursionError, MemoryError) as error:
        text = "the review needs more memory than the playground allows"
        return _written({"error": text, "fault": type(error).__name__})
    except Exception as error:
        return _written({"error": "internal error of the playground", "fault": type(error).__name__})


def _written(answer: JSONObject) -> bytes:
    return orjson.dumps(answer, option=orjson.OPT_NON_STR_KEYS)


def _read(source: BinaryIO) -> JSONObject | None:
    length = source.read(LENGTH_BYTES)
    if len(length) < LENGTH_BYTES:
        return None
    found: JSON = orjson.loads(source.read(int.from_bytes(length, "big")))
    return found if isinstance(found, dict) else {}


def _limit() -> None:
    """Bound memory, CPU time and files where the system can (not on Windows)."""
    try:
        import resource
    except ImportError:
        return
    for which, most in (
        (resource.RLIMIT_AS, _MEMORY_BYTES),
        (resource.RLIMIT_CPU, _CPU_SECONDS),
        (resource.RLIMIT_NOFILE, _FILES),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(which)
        resource.setrlimit(which, (most if hard == resource.RLIM_INFINITY else min(most, hard),) * 2)


if __name__ == "__main__":
    main()
