"""Log lines: one event each, with its fields, as JSON or for people; and those about answers.

Neither a resource's body nor a secret is ever logged: names, kinds and verdicts are.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, TextIO

import orjson

from pyverno.engine.faults import trace_of
from pyverno.engine.result import FailureAction, Fault, Status
from pyverno.errors import PyvernoError
from pyverno.kube.admissionreview import AdmissionRequest
from pyverno.sinks.characters import one_line
from pyverno.sinks.records import json_text
from pyverno.sinks.runners import without_commands
from pyverno.telemetry.observer import AdmissionOutcome
from pyverno.telemetry.throttle import Throttle

__all__ = ["TIME_FORMATS", "AnswerLog", "JsonFormatter", "LogSettings", "TextFormatter", "level_of", "set_up_logging"]

_LONGEST_TEXT: Final = 2048
_LONGEST_TRACE: Final = 100
_SAFE: Final = (PyvernoError, OSError)
"""Exceptions whose texts may be logged: they do not quote objects or policies."""
_BAD: Final = (Status.FAIL, Status.ERROR)
_RESET: Final = "\x1b[0m"
_FAINT: Final = "\x1b[90m"
_COLOURS: Final = {"DEBUG": "\x1b[33m", "INFO": "\x1b[32m", "WARNING": "\x1b[31m", "ERROR": "\x1b[1;31m"}
_LIBRARIES_FROM: Final = 6
"""The verbosity from which on lines of libraries are logged as well."""
_OURS: Final = ("pyverno", "kubesandbox")
_OF_EVERY_RECORD: Final = frozenset((*vars(logging.makeLogRecord({})), "message", "asctime", "taskName"))
log = logging.getLogger("pyverno.webhook")


def _stamp(moment: datetime, fraction: str) -> str:
    return f"{moment:%b} {moment.day:2d} {moment:%H:%M:%S}.{fraction}"


TIME_FORMATS: Final[Mapping[str, Callable[[datetime], str]]] = {
    "default": lambda moment: moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
    "iso8601": lambda moment: moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
    "rfc3339": lambda moment: moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
    "millis": lambda moment: _stamp(moment, f"{moment.microsecond // 1000:03d}"),
    "nanos": lambda moment: _stamp(moment, f"{moment.microsecond:06d}000"),
    "epoch": lambda moment: f"{moment:%a %b} {moment.day:2d} {moment:%H:%M:%S} UTC {moment.year}",
    "rfc3339nano": lambda moment: moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
}
"""How the moment of a line is written, by Kyverno's names; always in UTC."""


@dataclass(frozen=True, slots=True)
class LogSettings:
    """The form of lines (`json` or `text`), Kyverno's verbosity, a name of `TIME_FORMATS`, and whether to colour."""

    form: str = "text"
    verbosity: int = 2
    time: str = "default"
    is_coloured: bool = False


def level_of(verbosity: int) -> int:
    """Return the level from which on lines are written.

    Kyverno logs denials at 2 and every request at 4.

    >>> [logging.getLevelName(level_of(verbosity)) for verbosity in (0, 2, 4)]
    ['WARNING', 'INFO', 'DEBUG']
    """
    if verbosity < 2:
        return logging.WARNING
    return logging.INFO if verbosity < 4 else logging.DEBUG


class JsonFormatter(logging.Formatter):
    """One JSON object each line: `ts`, `level`, `logger`, `msg`, and the fields of the event."""

    def __init__(self, time: str = "default") -> None:
        super().__init__()
        self._time = TIME_FORMATS[time] if time != "default" else datetime.isoformat

    def format(self, record: logging.LogRecord) -> str:
        """Write one line.

        >>> record = logging.LogRecord("pyverno", 20, "", 0, "denied", (), None)
        >>> record.created, record.fields = 0, {"policy": "a"}
        >>> JsonFormatter().format(record)
        '{"ts":"1970-01-01T00:00:00+00:00","level":"info","logger":"pyverno","msg":"denied","policy":"a"}'
        """
        line = {
            "ts": self._time(datetime.fromtimestamp(record.created, UTC)),
            "level": record.levelname.lower(),
            "logger": record.name,
            "msg": record.getMessage(),
            **_fields(record),
        }
        if record.exc_info and record.exc_info[0] is not None:
            line["error"] = _trace(record.exc_info[1])
        return json_text(_json(line))


class TextFormatter(logging.Formatter):
    """A line for people: time, level, event, and the fields as `name=value`."""

    def __init__(self, time: str = "default", *, is_coloured: bool = False) -> None:
        super().__init__()
        self._time = TIME_FORMATS[time]
        self._is_coloured = is_coloured

    def format(self, record: logging.LogRecord) -> str:
        """Write one line."""
        time = self._time(datetime.fromtimestamp(record.created, UTC))
        fields = "".join(f" {name}={_quote(value)}" for name, value in _fields(record).items())
        level = f"{record.levelname:<5}"
        if self._is_coloured:
            time, fields = f"{_FAINT}{time}{_RESET}", fields and f"{_FAINT}{fields}{_RESET}"
            level = f"{_COLOURS.get(record.levelname, '')}{level}{_RESET}"
        text = f"{time} {level} {_quoted_text(record.getMessage())}{fields}"
        if record.exc_info and record.exc_info[0] is not None:
            text += "\n" + without_commands(_trace(record.exc_info[1]))
        return text


def _trace(error: BaseException | None) -> str:
    """Return an exception and its causes: functions and lines, and a text only where it can hold no value."""
    lines: list[str] = []
    while error is not None and len(lines) < _LONGEST_TRACE:
        text = one_line(f": {error}") if isinstance(error, _SAFE) else ""
        lines += [f"{type(error).__name__}{text}", *(f"  {place}" for place in trace_of(error.__traceback__))]
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return "\n".join(lines)


def _fields(record: logging.LogRecord) -> dict[str, object]:
    """Return the fields of an event, whether they are one attribute `fields` or, as in kubesandbox, attributes."""
    found = getattr(record, "fields", None)
    if isinstance(found, dict):
        return found
    if record.name.partition(".")[0] not in _OURS:
        return {}
    return {name: value for name, value in vars(record).items() if name not in _OF_EVERY_RECORD}


def _quote(value: object) -> str:
    if isinstance(value, dict | list | tuple):
        text = _json(value)
        return without_commands(text if text.isprintable() else json.dumps(value, default=str))
    text = str(value)
    return without_commands(json.dumps(text)) if not text or any(each in text for each in ' "=') else _quoted_text(text)


def _quoted_text(text: str) -> str:
    """Return a text without line breaks and terminal escapes."""
    return without_commands(text if text.isprintable() else json.dumps(text))  # guard: an event of the log is one line


def _json(value: object) -> str:
    try:
        return orjson.dumps(value, default=str).decode()
    except TypeError:  # half of a character in a text of a caller
        return json.dumps(value, default=str)


def set_up_logging(settings: LogSettings, stream: TextIO | None = None) -> None:
    """Send all log lines to a stream (stderr)."""
    # no line has the caller, thread or process of its event, and finding them takes longer than writing it
    logging._srcfile = None  # as the logging HOWTO has it
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    handler = logging.StreamHandler(stream or sys.stderr)
    if settings.form == "json":
        handler.setFormatter(JsonFormatter(settings.time))
    else:
        handler.setFormatter(TextFormatter(settings.time, is_coloured=settings.is_coloured))
    level = level_of(settings.verbosity)
    others = level if settings.verbosity >= _LIBRARIES_FROM else max(level, logging.INFO)
    logging.basicConfig(level=others, handlers=[handler], force=True)
    logging.getLogger("pyverno").setLevel(level)


class AnswerLog:
    """An `Observer` of the webhook server that logs denials and errors, and other responses at debug level.

    Any client can cause refusals: a few of each kind are logged at once and then one a second.
    """

    def __init__(self, throttle: Throttle | None = None) -> None:
        """Take what holds lines back."""
        self._throttle = throttle or Throttle()

    def answered(
        self, admission_request: AdmissionRequest, path: str, outcome: AdmissionOutcome, seconds: float
    ) -> None:
        """Log a response, with a line for each rule that failed or broke."""
        level = logging.DEBUG if outcome.answer.allowed else logging.INFO
        about: dict[str, object] = {}
        if log.isEnabledFor(level):
            about = _about(admission_request, path, seconds)
            verb = "allowed" if outcome.answer.allowed else "denied"
            # no review: the request was filtered, or no policy is on the path
            results = None if outcome.review is None else len(outcome.review.results)
            log.log(level, "admission request %s", verb, extra={"fields": {**about, "results": results}})
        if outcome.fault is not None:
            log.error("a bug kept an answer from being worded", extra={"fields": _fault(outcome.fault)})
        self._log_results(admission_request, path, outcome, seconds, about)

    def audited(
        self, admission_request: AdmissionRequest, path: str, outcome: AdmissionOutcome, seconds: float
    ) -> None:
        """Write one line for each rule that failed or broke."""
        self._log_results(admission_request, path, outcome, seconds, {})

    @staticmethod
    def _log_results(
        admission_request: AdmissionRequest,
        path: str,
        outcome: AdmissionOutcome,
        seconds: float,
        about: dict[str, object],
    ) -> None:
        if outcome.review is None:
            return
        for rule, fault in outcome.review.faults:
            fields = {"policy": rule.policy.key, "rule": rule.name, **_fault(fault)}
            # any client can exceed the depth limit of objects
            level = logging.INFO if fault.code == "fault-depth" else logging.ERROR
            log.log(
                level, "a bug ended a rule", extra={"fields": {**fields, **_about(admission_request, path, seconds)}}
            )
        if not log.isEnabledFor(logging.INFO):
            return
        for result in outcome.review.results:
            if result.status in _BAD:
                about = about or _about(admission_request, path, seconds)
                failure = {
                    "policy": result.rule.policy.key,
                    "rule": result.rule.name,
                    "verdict": result.status.value,
                    "action": "Enforce" if result.action is FailureAction.ENFORCE else "Audit",
                    **_message_field(admission_request, result.message),
                    **about,
                }
                log.info("validation failed", extra={"fields": failure})

    def failed(self, path: str, error: BaseException) -> None:
        """Write why a request was refused; what is a fault of ours comes with functions and lines, without its text."""
        held_back = self._throttle.held_back(type(error).__name__)
        if held_back is None:
            return
        is_ours = not hasattr(error, "status")
        text = type(error).__name__ if is_ours else str(error)[:_LONGEST_TEXT]
        fields = {"path": path[:_LONGEST_TEXT], "error": text, "held_back": held_back}
        log.log(
            logging.ERROR if is_ours else logging.INFO,
            "request refused",
            exc_info=error if is_ours else None,
            extra={"fields": fields},
        )


def _fault(fault: Fault) -> dict[str, object]:
    """Return what operators and authors of bug reports need: functions and lines, never values."""
    return {"code": fault.code, "error": fault.error, "trace": list(fault.trace)}


def _message_field(admission_request: AdmissionRequest, message: str) -> dict[str, object]:
    """Return the text of a rule; one about a Secret may hold what is in it."""
    return {} if admission_request.is_secret else {"message": message[:_LONGEST_TEXT]}


def _about(admission_request: AdmissionRequest, path: str, seconds: float) -> dict[str, object]:
    info = admission_request.request.get("userInfo") or {}
    gvk = admission_request.kind
    return {
        "gvk": f"{gvk.api_version}, Kind={gvk.kind}",
        "gvr": admission_request.request.get("resource") or {},
        "kind": gvk.kind,
        "namespace": admission_request.namespace,
        "name": admission_request.name,
        "resource": "/".join(part for part in (admission_request.namespace, gvk.kind, admission_request.name) if part),
        "operation": admission_request.operation,
        "user": info.get("username", ""),
        "groups": info.get("groups") or [],
        "uid": admission_request.uid,
        "path": path,
        "seconds": round(seconds, 6),
    }
