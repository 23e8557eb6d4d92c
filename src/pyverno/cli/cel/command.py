"""`pyverno cel`: evaluate and check CEL expressions as policies use them, and list their functions.

No cluster, network or policy takes part. The text output of expressions is YAML, with type, cost and trace in comments.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import click

from pyverno.cli.args.groups import group
from pyverno.cli.args.sections import command
from pyverno.cli.cel.environment import (
    authorization_mode,
    check_bindings,
    expected_type,
    named_environment,
    parse_kubernetes_version,
    typed_by_kind,
)
from pyverno.cli.cel.flags import CHECK, EVAL, FUNCTIONS
from pyverno.cli.cel.inputs import DOCUMENT_FLAGS, Inputs, bindings, is_variable_name
from pyverno.cli.cel.run import Outcome, Row, as_json, run
from pyverno.cli.cel.values import Printer
from pyverno.cli.errors import Exit, check_known, report_error
from pyverno.cli.terminal import STDERR, STDOUT
from pyverno.compiler.cel.hints import compile_hint
from pyverno.errors import PyvernoError, UsageError
from pyverno.kube.json import JSON, JSONObject, encode_indent
from pyverno.kube.yaml.writer import dump_yaml
from pyverno.lang.cel import CompileError, Environment, Issue
from pyverno.lang.cel.listing import listed_functions
from pyverno.lang.cel.syntax.source import Source
from pyverno.lang.cel.types import Type

__all__ = ["cel"]

_SHOWN_VALUE = 60
_SHOWN_TEXT = 100
_TYPE_WIDTH = 40


def _print(text: str) -> None:
    STDOUT.write(text)


def _writer(output: str) -> Callable[[JSON], str] | None:
    """Return the writer of a machine format, None for text; raises UsageError for an unknown format."""
    if output not in ("text", "json", "yaml"):
        raise UsageError(f'invalid output format "{output}", must be one of text, json, yaml')
    if output == "text":
        return None
    return dump_yaml if output == "yaml" else lambda found: encode_indent(found) + "\n"


def _comment(text: str) -> str:
    return "".join(f"# {line}\n" for line in text.splitlines()) or "#\n"


def _eval(
    *,
    words: tuple[str, ...],
    query: Sequence[str],
    input: str,
    var: Sequence[str],
    environment: str,
    kubernetes_version: str,
    trace: bool,
    cost_limit: int,
    timeout: int,
    output: str,
    **documents: str,
) -> None:
    write, inputs = _writer(output), Inputs()
    if cost_limit <= 0 or timeout <= 0:
        raise UsageError("--cost-limit and --timeout must be greater than zero")
    expressions = inputs.expressions(words, query)
    given = inputs.variables(input, {name: documents[key] for key, name in DOCUMENT_FLAGS.items()}, var)
    version = parse_kubernetes_version(kubernetes_version)
    known = named_environment(environment, version, given, cost_limit=cost_limit)
    mode = authorization_mode(environment)
    bound = check_bindings(given, mode) if mode else given
    if "request" in known.names.variables:
        bound = bindings(given, is_kyverno="exceptions" in known.names.variables)
    printer = Printer(known.names)
    results: list[JSONObject] = []
    shown: list[str] = []
    for text in expressions:
        deadline = time.monotonic() + timeout / 1e9
        try:
            outcome = run(text, known, bound, deadline=deadline, is_traced=trace)
        except PyvernoError as error:
            results.append(_refused(text, error))
            continue
        results.append(as_json(outcome, printer) if write is not None else {"error": outcome.error})
        shown.append(_render_outcome(outcome, printer) if write is None else "")
        if outcome.error:
            report_error(outcome.error if len(expressions) == 1 else f"{text}: {outcome.error}")
    _print("---\n".join(shown) if write is None else write(results))
    if any(each.get("error") or "errors" in each for each in results):
        raise Exit(1)


def _refused(text: str, error: PyvernoError) -> JSONObject:
    """Report an expression that does not compile, and return the errors as JSON."""
    if not isinstance(error, CompileError):
        report_error(error)
        return {"expression": text, "errors": [{"message": str(error)}]}
    hint = _file_hint(text) or compile_hint(error)
    STDERR.write(f"{error.message}\n" + (f"  hint: {hint}\n" if hint else ""))
    result: JSONObject = {"expression": text, "errors": [_issue(issue, error.source) for issue in error.issues]}
    return {**result, "hint": hint} if hint else result


def _file_hint(text: str) -> str:
    with suppress(OSError, ValueError):  # an expression that can be no path
        if Path(text).is_file():
            return f"`{text}` is a file: `-q {text}` reads the expression in it"
    return ""


def _render_outcome(outcome: Outcome, printer: Printer) -> str:
    """Return one YAML document: the value, and in comments the expression, its type, its cost and its trace."""
    head = _comment(outcome.expression) + _comment(f"type: {outcome.type}, cost: {outcome.cost}")
    lines = [head, _comment(f"error: {outcome.error}") if outcome.error else dump_yaml(outcome.value)]
    if outcome.rows is not None:
        lines.append(_comment("trace:"))
        lines += _trace_lines(outcome.rows, printer)
        if outcome.hidden:
            lines.append(_comment(f"  {outcome.hidden} more sub-expressions"))
    return "".join(lines)


def _trace_lines(rows: Sequence[Row], printer: Printer) -> Iterator[str]:
    cells = [(row.type[:_TYPE_WIDTH], _values(row, printer), _format_row(row)) for row in rows]
    types, values = (max(len(cell[column]) for cell in cells) for column in (0, 1))
    for type_, shown, text in cells:
        yield _comment(f"  {type_:<{types}}  {shown:<{values}}  {text}")


def _format_row(row: Row) -> str:
    text = " ".join(row.text[: 4 * _SHOWN_TEXT].split())
    return "  " * min(row.depth, 20) + (text if len(text) <= _SHOWN_TEXT else text[:_SHOWN_TEXT] + "…")


def _values(row: Row, printer: Printer) -> str:
    """Return the values of a sub-expression, one per visit, as far as there is room."""
    if not row.visits:
        return "(not evaluated)"
    shown = ""
    for number, (found, error) in enumerate(row.values):
        each = f"error: {error}"[:_SHOWN_VALUE] if error else printer.brief(found, _SHOWN_VALUE)
        if number and len(shown) + len(each) > _SHOWN_VALUE:
            return f"{shown} ; {row.visits - number} more"
        shown += f" ; {each}" if number else each
    rest = row.visits - len(row.values)
    return f"{shown} ; {rest} more" if rest else shown


def _check(
    *,
    words: tuple[str, ...],
    query: Sequence[str],
    expect: Sequence[str],
    declare: Sequence[str],
    kind: str,
    crd: Sequence[str],
    policy: Sequence[str],
    environment: str,
    kubernetes_version: str,
    output: str,
) -> None:
    write, version = _writer(output), parse_kubernetes_version(kubernetes_version)
    if policy:
        if words or query or expect or declare or kind:
            raise UsageError("--policy takes no expressions, and none of --kind, --declare and --expect")
        _check_policies(policy, crd, version, write)
        return
    expressions = Inputs().expressions(words, query)
    known = named_environment(environment, version)
    if kind or crd:
        known = typed_by_kind(known, kind, crd, version)
    known = known.with_variables(dict(_declaration(text, known) for text in declare))
    expected = tuple(expected_type(text, known) for text in expect) or None
    results = [_check_type(text, known, expected) for text in expressions]
    if write is not None:
        _print(write(results))
    else:
        _print("".join(_comment(each["expression"]) + f"{each['type']}\n" for each in results if "type" in each))
    if any("errors" in each for each in results):
        raise Exit(1)


def _check_policies(
    policies: Sequence[str], crds: Sequence[str], version: tuple[int, int], write: Callable[[JSON], str] | None
) -> None:
    from pyverno.cli.cel.policies import check_policies, format_policy

    checked, errors = check_policies(policies, crds, version)
    for error in errors:
        report_error(error)
    if write is not None:
        _print(write({each.name: each.found.to_json() for each in checked}))
    else:
        _print("".join(line for each in checked for line in format_policy(each)))
    if errors or any(each.found.warnings for each in checked):
        raise Exit(1)


def _check_type(text: str, environment: Environment, expected: tuple[Type, ...] | None) -> JSONObject:
    """Return the type of an expression, or its errors, which are also reported."""
    try:
        return {"expression": text, "type": str(environment.compile(text, expected=expected).type)}
    except PyvernoError as error:
        return _refused(text, error)


def _issue(issue: Issue, source: Source) -> JSONObject:
    line, column = source.place(issue.offset)
    return {"line": line, "column": column + 1, "message": issue.message}


def _declaration(text: str, environment: Environment) -> tuple[str, Type]:
    name, equals, written = text.partition("=")
    if not equals or not is_variable_name(name):
        raise UsageError(f'invalid argument "{text}" for "--declare" flag: expected NAME=TYPE')
    return name, expected_type(written, environment)


def _functions(words: tuple[str, ...], environment: str, kubernetes_version: str, output: str) -> None:
    write = _writer(output)
    known = named_environment(environment, parse_kubernetes_version(kubernetes_version))
    check_known(words, {each.name for each in (*listed_functions(known), *listed_functions(known, words))}, "function")
    found = listed_functions(known, words)
    if write is not None:
        _print(write([each.to_json() for each in found]))
        return
    for each in found:
        _print(f"Name: {each.name}\n")
        _print("".join(f"  Signature: {signature}\n" for signature in each.signatures))
        _print("".join(f"  Example:   {example}\n" for example in each.examples))
        _print(f"  Note:      {each.note}\n" if each.note else "")
        _print(f"  Library:   {each.library}\n\n")


def _expressions() -> click.Argument:
    return click.Argument(["words"], nargs=-1, metavar="[EXPRESSION]...")


eval_command = command(
    "eval",
    "Evaluate CEL expressions with documents of your own as variables.\n\n"
    "There is no cluster, registry or network: functions that need one are errors.",
    _eval,
    EVAL,
    _expressions(),
    examples=(
        "pyverno cel eval 'object.spec.replicas > 1' --object deployment.yaml --trace",
        "pyverno cel eval 'object.spec == oldObject.spec' --object new.yaml --old-object old.yaml -o json",
        "kubectl get pod web -o json | pyverno cel eval 'image(object.spec.containers[0].image).tag()' -i -",
        "pyverno cel eval 'request.userInfo.groups.exists(g, g == \"admins\")' --request review.json",
        "pyverno cel eval 'x.map(i, i * 2)' --var 'x=[1, 2]' --environment standard",
    ),
)

check = command(
    "check",
    "Compile CEL expressions and print their types, or their errors.\n\n"
    "With --policy, check the expressions of policies against the schemas of the kinds that they match, as Kubernetes "
    "does for `status.typeChecking` of a ValidatingAdmissionPolicy.",
    _check,
    CHECK,
    _expressions(),
    examples=(
        "pyverno cel check 'object.spec.replicas > 1' --expect bool",
        "pyverno cel check 'object.spec.replicas > 1' --kind Deployment",
        "pyverno cel check --query expression.cel --crd crd.yaml",
        "pyverno cel check --policy policies/ --crd crd.yaml --kubernetes-version 1.30",
        "pyverno cel check 'items.filter(i, i > 2)' --declare 'items=list(int)' -e kubernetes",
    ),
)

functions = command(
    "functions",
    "List the functions and macros of an environment, or those that are named.",
    _functions,
    FUNCTIONS,
    click.Argument(["words"], nargs=-1, metavar="[NAME]..."),
    examples=(
        "pyverno cel functions",
        "pyverno cel functions sha256 quantity",
        "pyverno cel functions --environment kubernetes --kubernetes-version 1.29",
    ),
)

cel = group(
    "cel",
    "Work with CEL, the language of policies.kyverno.io and of Kubernetes' admission policies.",
    eval_command,
    check,
    functions,
    examples=(
        "pyverno cel eval 'object.metadata.name' --object pod.yaml",
        "pyverno cel check 'object.metadata.name.size() < 10'",
        "pyverno cel functions quantity",
    ),
)
