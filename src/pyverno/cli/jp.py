"""`pyverno jp`: evaluate, parse and list JMESPath as policies use it.

With `cel`, the only command that uses a language directly.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from pyverno.cli.args.flags import comma_list, switch, value
from pyverno.cli.args.groups import group
from pyverno.cli.args.sections import command
from pyverno.cli.errors import check_known
from pyverno.cli.terminal import STDOUT
from pyverno.errors import DocumentError, EvaluationError, ExpressionSyntaxError, PyvernoError, UsageError
from pyverno.kube.json import JSON, encode, encode_indent
from pyverno.kube.yaml.documents import load_documents
from pyverno.lang.jmespath import FUNCTIONS, compile_expression, dump, parse
from pyverno.lang.runtime import Runtime
from pyverno.offline.files import read_stdin
from pyverno.offline.system import OfflineSystem, System
from pyverno.spelling import did_you_mean

# trust rows: named-file

__all__ = ["jp"]


def _print(*lines: str) -> None:
    STDOUT.write("".join(f"{line}\n" for line in lines))


def _read(path: str) -> str:
    try:
        return Path(path).read_bytes().decode("utf-8", "replace")
    except OSError as error:
        raise UsageError(f"failed open file {path}: {(error.strerror or str(error)).lower()}") from error


def _prompt(what: str) -> str:
    """Prompt for text and read it from standard input; Kyverno prompts on stdout, also in a pipe."""
    _print("Reading from terminal input.", f"Enter {what} and hit Ctrl+D.")
    STDOUT.flush()
    return read_stdin().decode("utf-8", "replace")


def _document(text: str, name: str) -> JSON:
    try:
        documents = load_documents(text, file=name)
    except PyvernoError as error:
        raise UsageError(f"error parsing input json: {error}") from error
    if len(documents) > 1:
        raise UsageError(f"error parsing input json: `{name}` holds {len(documents)} documents, expected one")
    return documents[0].value if documents else None


def _query(
    words: tuple[str, ...], *, input: str, query: Sequence[str], dns: bool, compact: bool, unquoted: bool
) -> None:
    queries = [*words, *(_read(path) for path in query)]
    if not queries and not input:
        raise UsageError("at least one query or input object is required")
    if not queries:
        queries = [_prompt("a jmespath expression")]
    data = _document(_read(input) if input else _prompt("input object"), input or "-")
    for text in queries:
        result = _evaluate(text, data, System() if dns else OfflineSystem())
        _print(f"# {text}")
        _print(_render_result(result, compact=compact, unquoted=unquoted))


def _evaluate(text: str, data: JSON, system: System) -> JSON:
    try:
        expression = compile_expression(text)
    except ExpressionSyntaxError as error:
        raise UsageError(f"failed to compile JMESPath: {text}, error: {error}") from error
    try:
        return expression.evaluate(data, Runtime(system))
    except EvaluationError as error:
        # the values come from the user's input
        _, is_unknown, name = error.detailed.partition("unknown function: ")
        hint = did_you_mean(name, tuple(FUNCTIONS)) if is_unknown else ""
        raise UsageError(f"error evaluating JMESPath expression: {error.detailed}{hint}") from error
    except PyvernoError as error:
        raise UsageError(f"error evaluating JMESPath expression: {error}") from error


def _render_result(result: JSON, *, compact: bool, unquoted: bool) -> str:
    if unquoted and isinstance(result, str):
        return result
    try:
        return encode(result) if compact else encode_indent(result)
    except DocumentError as error:
        raise UsageError(f"error marshalling result to JSON: {error}") from error


def _parse(words: tuple[str, ...], file: Sequence[str]) -> None:
    expressions = [*words, *(_read(path) for path in file)]
    for text in expressions or [_prompt("a jmespath expression")]:
        try:
            node = parse(text)
        except ExpressionSyntaxError as error:
            caret = " " * error.offset + "^"
            raise UsageError(f"{error}\n{text}\n{caret}") from error
        except RecursionError:
            raise UsageError("SyntaxError: expression is nested too deeply") from None
        _print(f"# {text}", dump(node))


def _function(words: tuple[str, ...]) -> None:
    check_known(words, FUNCTIONS, "function")
    listed = (each for each in FUNCTIONS.values() if (each.name in words if words else not each.standard))
    for function in sorted(listed, key=lambda each: each.signature):
        _print(f"Name: {function.name}", f"  Signature: {function.signature}")
        if function.note:
            _print(f"  Note:      {function.note}")
        _print("")


query = command(
    "query",
    "Evaluate JMESPath expressions on a JSON or YAML document.\n\n"
    "Expressions and documents that are not given are read from stdin.",
    _query,
    {
        "Input": (
            value("-i", "--input", help="File with the document.", metavar="FILE"),
            comma_list("-q", "--query", help="Files with expressions."),
            switch("--dns", help="Look up the host names for which expressions ask (`is_external_url`)."),
        ),
        "Output": (
            switch("-c", "--compact", help="Print each result on one line."),
            switch("-u", "--unquoted", help="Print texts as they are, without quotes."),
        ),
    },
    click.Argument(["words"], nargs=-1, metavar="[QUERY]..."),
    examples=(
        "pyverno jp query 'spec.containers[].image' --input pod.yaml",
        "echo '{\"a\": [3, 1, 2]}' | pyverno jp query 'sort(a)' --compact",
        "pyverno jp query --query expression.txt --input pod.yaml",
    ),
)

parse_command = command(
    "parse",
    "Print the syntax tree of JMESPath expressions.",
    _parse,
    {"Options": (comma_list("-f", "--file", help="Files with expressions."),)},
    click.Argument(["words"], nargs=-1, metavar="[EXPRESSION]..."),
    examples=(
        "pyverno jp parse 'request.object.metadata.name | truncate(@, `9`)'",
        "pyverno jp parse --file expression.txt",
        "echo 'a.b' | pyverno jp parse",
    ),
)

function = command(
    "function",
    "List the functions that Kyverno adds to JMESPath, or those that are named.",
    _function,
    {"Options": ()},
    click.Argument(["words"], nargs=-1, metavar="[NAME]..."),
    examples=(
        "pyverno jp function",
        "pyverno jp function truncate to_upper",
    ),
)

jp = group(
    "jp",
    "Work with JMESPath, the language of variables and conditions in policies.",
    query,
    parse_command,
    function,
    examples=(
        'echo \'{"a": {"b": "c"}}\' | pyverno jp query a.b',
        "pyverno jp parse 'a || b'",
        "pyverno jp function random",
    ),
)
