"""Log lines: timestamps, colours, verbosity, and texts that cannot forge a line."""

from __future__ import annotations

import io
import logging
from collections.abc import Callable, Iterator

import orjson
import pytest

from pyverno.telemetry.logs import TIME_FORMATS, LogSettings, TextFormatter, level_of, set_up_logging

Lines = Callable[[LogSettings], io.StringIO]


@pytest.fixture
def lines() -> Iterator[Lines]:
    """Yield a function that sets up logging to a text; the end of the test restores it."""
    root, own = logging.getLogger(), logging.getLogger("pyverno")
    before = root.handlers[:], root.level, own.level
    found = {name: getattr(logging, name) for name in ("_srcfile", "logThreads", "logProcesses", "logMultiprocessing")}

    def begin(settings: LogSettings) -> io.StringIO:
        stream = io.StringIO()
        set_up_logging(settings, stream)
        return stream

    yield begin
    root.handlers[:] = before[0]
    root.setLevel(before[1])
    own.setLevel(before[2])
    for name, value in found.items():
        setattr(logging, name, value)


def record(told: str, /, **fields: object) -> logging.LogRecord:
    """Return a log record with a timestamp in April."""
    made = logging.LogRecord("pyverno.x", logging.INFO, "", 0, told, (), None)
    made.created = 1743465609.0625
    made.fields = fields
    return made


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("default", "2025-04-01T00:00:09Z"),
        ("iso8601", "2025-04-01T00:00:09Z"),
        ("rfc3339", "2025-04-01T00:00:09Z"),
        ("millis", "Apr  1 00:00:09.062"),
        ("nanos", "Apr  1 00:00:09.062500000"),
        ("epoch", "Tue Apr  1 00:00:09 UTC 2025"),
        ("rfc3339nano", "2025-04-01T00:00:09.062500Z"),
    ],
)
def test_moments_are_written_as_go_writes_them(name: str, expected: str) -> None:
    """The formats have Kyverno's names."""
    assert f"{expected} INFO  told" == TextFormatter(name).format(record("told"))


def test_every_form_of_moments_has_a_test() -> None:
    """The flag offers these formats and no others."""
    assert {"default", "iso8601", "rfc3339", "millis", "nanos", "epoch", "rfc3339nano"} == set(TIME_FORMATS)


def test_colours_surround_and_change_nothing_else() -> None:
    """Without them the line equals the plain one."""
    plain = TextFormatter().format(record("told", policy="a b"))
    coloured = TextFormatter(is_coloured=True).format(record("told", policy="a b"))
    assert plain != coloured
    for code in ("\x1b[0m", "\x1b[90m", "\x1b[32m"):
        coloured = coloured.replace(code, "")
    assert '2025-04-01T00:00:09Z INFO  told policy="a b"' == plain == coloured


@pytest.mark.parametrize("text", ["a\nERROR forged", "a\x1b[31m", "a\rb", "a\u2028b", "\ud800"])
def test_a_text_of_a_request_begins_no_line_and_moves_no_cursor(text: str) -> None:
    """Names and messages come from the requests under review."""
    line = TextFormatter().format(record("told", message=text))
    assert line.isprintable()


def test_values_that_are_no_texts_are_json(lines: Lines) -> None:
    """This holds in both formats; unprintable characters are escaped."""
    assert TextFormatter().format(record("told", gvr={"group": "apps"})).endswith('told gvr={"group":"apps"}')
    assert TextFormatter().format(record("told", a=["\u2028"])).endswith('told a=["\\u2028"]')
    stream = lines(LogSettings("json"))
    logging.getLogger("pyverno.x").info("told", extra={"fields": {"gvr": {"group": "apps"}}})
    assert {"group": "apps"} == orjson.loads(stream.getvalue())["gvr"]


@pytest.mark.parametrize(
    ("verbosity", "told"),
    [(0, ["WARNING"]), (2, ["INFO", "WARNING"]), (4, ["DEBUG", "INFO", "WARNING"]), (9, ["DEBUG", "INFO", "WARNING"])],
)
def test_the_verbosity_selects_the_levels_of_own_events(lines: Lines, verbosity: int, told: list[str]) -> None:
    """Events of libraries appear from verbosity 6 on."""
    stream = lines(LogSettings(verbosity=verbosity))
    log, library = logging.getLogger("pyverno.x"), logging.getLogger("asyncio")
    for level in (logging.DEBUG, logging.INFO, logging.WARNING):
        log.log(level, "own")
    library.debug("library")
    assert told == [line.split()[1] for line in stream.getvalue().splitlines() if "own" in line]
    assert (verbosity >= 6) == ("library" in stream.getvalue())
    assert logging.DEBUG == level_of(verbosity) or verbosity < 4


def test_an_event_is_logged_without_finding_what_no_line_has(lines: Lines) -> None:
    """Finding caller, thread and process costs more than the line, which has none of them."""
    lines(LogSettings())
    found: list[logging.LogRecord] = []
    logging.getLogger().handlers[0].addFilter(lambda each: not found.append(each))  # type: ignore[func-returns-value]
    logging.getLogger("pyverno").info("denied")
    assert [(0, None, None)] == [(each.lineno, each.thread, each.process) for each in found]


@pytest.mark.parametrize("form", ["text", "json"])
def test_events_with_attributes_show_them_as_fields(lines: Lines, form: str) -> None:
    """`delivery failed` of the pages came without target and reason; attributes of libraries stay out."""
    stream = lines(LogSettings(form, verbosity=1))
    for name in ("pyverno.ui", "kubesandbox.controllers", "aiohttp.access"):
        logging.getLogger(name).warning("it failed", extra={"target": "chat", "error": "no answer"})
    logging.getLogger("pyverno.ui").warning("it failed")
    ours = ' target=chat error="no answer"' if form == "text" else ',"target":"chat","error":"no answer"}'
    assert [True, True, False, False] == [line.endswith(ours) for line in stream.getvalue().splitlines()]
