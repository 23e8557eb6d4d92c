"""Log lines: one event each, with its fields, as JSON or for people; and those about answers.

Neither a resource's body nor a secret is ever logged: names, kinds and verdicts are. This module must never decide what
happens.
"""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime
from typing import Final, TextIO

import orjson

from pyverno.engine.result import Status
from pyverno.webhook.admission import Judged
from pyverno.webhook.question import Question

__all__ = ["AnswerLog", "JsonFormatter", "TextFormatter", "set_up_logging"]

_LONGEST_TEXT: Final = 2048
_BAD: Final = (Status.FAIL, Status.ERROR)
log = logging.getLogger("pyverno.webhook")


class JsonFormatter(logging.Formatter):
    """One JSON object each line: `ts`, `level`, `logger`, `msg`, and the fields of the event."""

    def format(self, record: logging.LogRecord) -> str:
        """Write one line.

        >>> record = logging.LogRecord("pyverno", 20, "", 0, "denied", (), None)
        >>> record.created, record.fields = 0, {"policy": "a"}
        >>> JsonFormatter().format(record)
        '{"ts":"1970-01-01T00:00:00+00:00","level":"info","logger":"pyverno","msg":"denied","policy":"a"}'
        """
        line = {
            "ts": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "msg": record.getMessage(),
            **_fields(record),
        }
        if record.exc_info and record.exc_info[0] is not None:
            line["error"] = self.formatException(record.exc_info)
        return orjson.dumps(line, default=str).decode()


class TextFormatter(logging.Formatter):
    """A line for people: time, level, event, and the fields as `name=value`."""

    def format(self, record: logging.LogRecord) -> str:
        """Write one line."""
        time = datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        fields = "".join(f" {name}={_quoted(value)}" for name, value in _fields(record).items())
        text = f"{time} {record.levelname:<5} {record.getMessage()}{fields}"
        if record.exc_info and record.exc_info[0] is not None:
            text += "\n" + self.formatException(record.exc_info)
        return text


def _fields(record: logging.LogRecord) -> dict[str, object]:
    found = getattr(record, "fields", None)
    return found if isinstance(found, dict) else {}


def _quoted(value: object) -> str:
    text = str(value)
    return orjson.dumps(text).decode() if not text or any(each in text for each in ' "\n=') else text


def set_up_logging(style: str, level: int = logging.INFO, stream: TextIO | None = None) -> None:
    """Send all log lines to a stream (stderr), as `json` or `text`."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter() if style == "json" else TextFormatter())
    logging.basicConfig(level=level, handlers=[handler], force=True)


class AnswerLog:
    """An `Observer` of the webhook server: denials and errors are told, other answers at debug level."""

    def answered(self, question: Question, path: str, judged: Judged, seconds: float) -> None:
        """Write what was answered, and for each rule that failed or broke one line of its own."""
        level = logging.DEBUG if judged.answer.allowed else logging.INFO
        if log.isEnabledFor(level):
            verb = "allowed" if judged.answer.allowed else "denied"
            log.log(level, "admission request %s", verb, extra={"fields": _about(question, path, seconds)})
        if judged.review is None:
            return
        for result in judged.review.results:
            if result.status in _BAD:
                fields = {
                    "policy": result.rule.policy.key,
                    "rule": result.rule.name,
                    "verdict": result.status.value,
                    "message": result.message[:_LONGEST_TEXT],
                    **_about(question, path, seconds),
                }
                log.info("validation failed", extra={"fields": fields})

    def failed(self, path: str, error: BaseException) -> None:
        """Write why a request was refused; what is a fault of ours comes with its traceback."""
        is_ours = not hasattr(error, "status")
        fields = {"path": path[:_LONGEST_TEXT], "error": str(error)[:_LONGEST_TEXT]}
        log.log(
            logging.ERROR if is_ours else logging.INFO,
            "request refused",
            exc_info=error if is_ours else None,
            extra={"fields": fields},
        )


def _about(question: Question, path: str, seconds: float) -> dict[str, object]:
    info = question.request.get("userInfo") or {}
    return {
        "kind": question.kind.kind,
        "namespace": question.namespace,
        "name": question.name,
        "operation": question.operation,
        "user": info.get("username", ""),
        "uid": question.uid,
        "path": path,
        "seconds": round(seconds, 6),
    }
