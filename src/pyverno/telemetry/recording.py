"""Admission requests as files, for `pyverno impact --recorded` and `pyverno analyze --recorded`.

Off unless a flag names a folder. Every request is written as it came, with the roles of its user and its namespace: one
AdmissionReview a line. An API server sends one write to several webhooks, each time with another uid and perhaps to
another replica, so a write may have several records; what reads them counts it once.

Confidential values are removed before a request leaves the process. Files are readable by their owner only, and bounded
in size and number; the oldest go first.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from pyverno.engine.request import Request
from pyverno.errors import UsageError
from pyverno.kube.admissionreview import AdmissionRequest
from pyverno.kube.json import JSONObject, dump
from pyverno.telemetry.observer import AdmissionOutcome
from pyverno.telemetry.redaction import Redaction
from pyverno.telemetry.throttle import Throttle

# trust rows: own-file

__all__ = ["Recorder", "RecordingFiles"]

_PATTERN: Final = "admission-*.jsonl"
_MAX_WAITING: Final = 200
_MAX_WAITING_BYTES: Final = 32 << 20
_OVERHEAD: Final = 4096
"""Memory of a waiting request beside the bytes of its body."""

log = logging.getLogger("pyverno.webhook")


class RecordingFiles:
    """Files of one folder, at most `files` of them and `size` bytes in all, whichever process writes them."""

    def __init__(self, folder: Path, *, size: int, files: int) -> None:
        """Create the folder if it is missing; raises UsageError when that is not possible."""
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"cannot record requests in `{folder}`: {error.strerror}") from error
        self._folder = folder
        self._files = files
        self._size = size
        self._most = size // files
        self._file = -1
        self._written = 0

    def append(self, line: bytes) -> bool:
        """Write a line; returns False for one that is larger than a file may be. Raises OSError."""
        if len(line) > self._most:
            return False
        if self._file < 0 or self._written + len(line) > self._most:
            self._open()
        try:
            done = 0
            while done < len(line):
                done += os.write(self._file, line[done:])
        except OSError:
            with suppress(OSError):  # a line in part would make the file unreadable
                os.ftruncate(self._file, self._written)
            raise
        self._written += len(line)
        return True

    def close(self) -> None:
        """Close the current file."""
        if self._file >= 0:
            os.close(self._file)
        self._file, self._written = -1, 0

    def _open(self) -> None:
        """Begin a file, after removing the oldest that would be too many."""
        self.close()
        known = [(path, _size(path)) for path in sorted(self._folder.glob(_PATTERN))]
        while known and (len(known) >= self._files or sum(size for _, size in known) > self._size - self._most):
            known.pop(0)[0].unlink(missing_ok=True)
        name = f"admission-{time.time_ns():020d}-{os.getpid()}.jsonl"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
        self._file = os.open(self._folder / name, flags, 0o600)


class Recorder:
    """An `Observer` of the webhook server that writes requests in a thread of its own.

    Requests that no policy may judge, such as those of excluded users, are left out. What comes faster than it can be
    written is dropped, counted and logged.
    """

    def __init__(
        self, files: RecordingFiles, redaction: Redaction, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        """Take where to write, and what to remove before."""
        self._files = files
        self._redaction = redaction
        self._now = now
        self._lock = threading.Lock()
        self._is_closed = False
        self._waiting = 0
        self._waiting_bytes = 0
        self._throttle = Throttle(burst=1, per_second=1 / 60)
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="record")

    def answered(
        self, admission_request: AdmissionRequest, path: str, outcome: AdmissionOutcome, seconds: float
    ) -> None:
        """Write the request, in the thread of the recorder."""
        if self._is_closed or outcome.review is None:
            return
        weight = admission_request.size + _OVERHEAD
        with self._lock:
            is_full = self._waiting >= _MAX_WAITING or self._waiting_bytes + weight > _MAX_WAITING_BYTES
            if not is_full:
                self._waiting += 1
                self._waiting_bytes += weight
        if is_full:
            self._drop("requests come faster than they are written")
            return
        self._worker.submit(self._write, admission_request, path, outcome.review.request, self._now(), weight)

    def failed(self, path: str, error: BaseException) -> None:
        """Write nothing: the request may not even have been read."""

    def close(self) -> None:
        """Wait for the requests that are being written, and close the file; later requests are not written."""
        self._is_closed = True
        self._worker.shutdown()
        self._files.close()

    def _write(
        self, admission_request: AdmissionRequest, path: str, request: Request, moment: datetime, weight: int
    ) -> None:
        try:
            if not self._files.append(dump(self._record(admission_request, path, request, moment)) + b"\n"):
                self._drop("it is larger than a file may be")
        except OSError as error:
            self._drop(str(error.strerror))
        except Exception:
            log.exception("a request was not recorded")
        finally:
            with self._lock:
                self._waiting -= 1
                self._waiting_bytes -= weight

    def _record(self, admission_request: AdmissionRequest, path: str, request: Request, moment: datetime) -> JSONObject:
        body, is_redacted = self._redaction.request(admission_request)
        recorded: JSONObject = {
            "time": moment.isoformat(timespec="microseconds"),
            "webhook": path,
            "roles": list(request.user.roles),
            "clusterRoles": list(request.user.cluster_roles),
            "redacted": is_redacted,
        }
        if request.namespace_labels is not None:
            recorded["namespaceLabels"] = dict(request.namespace_labels)
        if request.namespace_object is not None:
            recorded["namespaceObject"] = self._redaction.document(request.namespace_object)
        return {
            "apiVersion": admission_request.api_version,
            "kind": "AdmissionReview",
            "request": body,
            "recorded": recorded,
        }

    def _drop(self, reason: str) -> None:
        held_back = self._throttle.held_back("record")
        if held_back is not None:
            fields = {"reason": reason, "suppressed": held_back}
            log.warning("a request was not recorded", extra={"fields": fields})


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:  # another process removed it
        return 0
