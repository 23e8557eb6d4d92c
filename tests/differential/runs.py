"""Runs a command on a batch and reads its answers: results, changed objects, refused policies, values of queries."""

from __future__ import annotations

import json
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import yaml

from pyverno.kube.json import JSON, JSONObject, encode
from tests.differential.generate.batches import Batch

__all__ = ["Answer", "Answers", "Command", "Key", "answers_of", "excepted_policy"]

_SECONDS = 300
_SKIPPED = re.compile(r"^\d+\. (\S+?)(?:: (.*))?$")
_OWN_ERROR = re.compile(r"^Error: \S*/(p\d+)\.yaml(?::\d+:\d+)?: (.*)$")


@dataclass(frozen=True, slots=True, order=True)
class Key:
    """The subject of an answer: a `result`, a changed or generated `object`, a `policy`, a `query`."""

    kind: str
    policy: str = ""
    rule: str = ""
    resource: str = ""

    def __str__(self) -> str:
        return " ".join(part for part in (self.kind, self.policy, self.rule, self.resource) if part)


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a command for one key; for an object, the text is its content."""

    status: str
    text: str = ""
    details: str = ""


Answers = dict[Key, Answer]


@dataclass(frozen=True, slots=True)
class Command:
    """A command line that the words of a run are appended to."""

    words: tuple[str, ...]
    extra: tuple[str, ...] = ()
    environment: dict[str, str] | None = field(default=None, hash=False)

    def run(self, words: Sequence[str], folder: Path) -> tuple[int, str, str]:
        """Return exit code, stdout and stderr."""
        found = subprocess.run(
            [*self.words, *words],
            cwd=folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
        return found.returncode, found.stdout.decode(errors="replace"), found.stderr.decode(errors="replace")


def answers_of(command: Command, batch: Batch) -> Answers:
    """Return a command's answers to a batch; a policy that stops the whole run is found by name or by halving."""
    if batch.queries:
        return _query(command, batch)
    names = sorted({policy["metadata"]["name"] for policy in batch.policies})
    return _apply(command, batch, names)


def _apply(command: Command, batch: Batch, names: list[str]) -> Answers:
    with TemporaryDirectory(prefix="differential-") as place:
        found, fatal = _apply_once(command, batch, names, Path(place))
    if not fatal:
        return found
    named = re.search(r"\bpolicy (p\d+)\b", fatal)
    culprit = names[0] if len(names) == 1 else named[1] if named is not None and named[1] in names else ""
    if culprit:
        others = [name for name in names if name != culprit]
        stopped = {Key("policy", culprit): Answer("stops the run", fatal)}
        return {**stopped, **_apply(command, batch, others)} if others else stopped
    middle = len(names) // 2
    return {**_apply(command, batch, names[:middle]), **_apply(command, batch, names[middle:])}


def _apply_once(command: Command, batch: Batch, names: list[str], folder: Path) -> tuple[Answers, str]:
    """Return the answers, or why the run ended without any."""
    words = ["apply", *_write(batch, names, folder), *command.extra]
    code, out, err = command.run(words, folder)
    reports = [json.loads(line[at:]) for line in out.splitlines() if (at := line.find('{"')) >= 0 and "Report" in line]
    found: Answers = {}
    for name, reason in _refused(out, err):
        found[Key("policy", name)] = Answer("refused", reason)
    if not reports and (code != 0 or "panic:" in err) and len(found) < len(names):
        return {}, _last_line(err) or f"exit code {code}"
    found |= _results(reports)
    # a run without the policy of an object prints it as well, unchanged
    found |= {key: answer for key, answer in _objects(folder / "objects").items() if key.policy in names}
    return found, ""


def _write(batch: Batch, names: list[str], folder: Path) -> list[str]:
    (folder / "policies").mkdir()
    (folder / "objects").mkdir()
    for name in names:
        documents = [policy for policy in batch.policies if policy["metadata"]["name"] == name]
        _write_documents(folder / "policies" / f"{name}.yaml", documents)
    _write_documents(folder / "resources.yaml", batch.resources)
    words = [f"policies/{name}.yaml" for name in names]
    words += ["--resource", "resources.yaml", "--policy-report", "--output-format", "json", "--output", "objects"]
    exceptions = [item for item in batch.exceptions if excepted_policy(item) in names]
    if exceptions:
        _write_documents(folder / "exceptions.yaml", exceptions)
        words += ["--exception", "exceptions.yaml"]
    if batch.values is not None:
        kept = [item for item in batch.values.get("policies", ()) if item["name"] in names]
        _write_documents(folder / "values.yaml", [{**batch.values, "policies": kept}])
        words += ["--values-file", "values.yaml"]
    if batch.user is not None:
        _write_documents(folder / "user.yaml", [batch.user])
        words += ["--userinfo", "user.yaml"]
    if batch.parameters:
        _write_documents(folder / "parameters.yaml", batch.parameters)
        words += ["--parameter-resource", "parameters.yaml"]
    if batch.family == "deletions":
        words.append("--continue-on-fail")
    return words


def excepted_policy(exception: JSONObject) -> str:
    """Return the name of the policy of an exception."""
    spec = exception["spec"]
    return str(spec["exceptions"][0]["policyName"] if "exceptions" in spec else spec["policyRefs"][0]["name"])


def _write_documents(path: Path, documents: Sequence[JSONObject]) -> None:
    """Write documents as JSON, which every reader of YAML reads the same way."""
    path.write_text("\n---\n".join(encode(document) for document in documents) + "\n", encoding="utf-8")


def _refused(out: str, err: str) -> Iterator[tuple[str, str]]:
    for line in [*out.splitlines(), *err.splitlines()]:
        shown = _SKIPPED.match(line)
        own = _OWN_ERROR.match(line)
        if shown is not None:
            yield shown[1], shown[2] or ""
        elif own is not None:
            yield own[1], own[2]


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    causes = [line for line in lines if line.startswith(("panic:", "Error:", "fatal error:"))]
    return (causes[:1] or lines[-1:] or [""])[0].strip()


def _results(reports: Sequence[JSONObject]) -> Answers:
    several: dict[Key, list[JSONObject]] = defaultdict(list)
    for report in reports:
        for result in report.get("results") or ():
            subject = (result.get("resources") or [{}])[0]
            resource = f"{subject.get('kind', '')}/{subject.get('name', '')}"
            policy = str(result.get("policy", "")).rpartition("/")[2]
            several[Key("result", policy, result.get("rule", ""), resource)].append(result)
    return {key: _answer(results) for key, results in several.items()}


def _answer(results: list[JSONObject]) -> Answer:
    def part(read: str) -> str:
        return " + ".join(sorted(str(result.get(read, "")) for result in results))

    details = [_details(result) for result in results]
    return Answer(part("result"), part("message"), " + ".join(sorted(details)))


_NOT_DETAILS = {"message", "policy", "resources", "result", "rule", "timestamp"}


def _details(result: JSONObject) -> str:
    kept = {key: value for key, value in result.items() if key not in _NOT_DETAILS}
    return json.dumps(kept, sort_keys=True, ensure_ascii=False)


def _objects(folder: Path) -> Answers:
    """Return the last state of each changed object, and everything that was generated."""
    found: Answers = {}
    for path in sorted(folder.iterdir()):
        documents = [text for text in path.read_text(encoding="utf-8").split("\n---\n") if text.strip()]
        if not documents:
            continue
        name = path.stem.removesuffix("-mutated")
        if name != path.stem:
            found[Key("object", name.split("-")[0], "", name)] = Answer("changed", _object(documents[-1]))
        else:
            policy = path.stem.removesuffix("-generated")
            texts = sorted(_object(document) for document in documents)
            found[Key("object", policy, "", "generated")] = Answer("generated", "\n".join(texts))
    return found


def _object(written: str) -> str:
    return _text(yaml.load(written, Loader=yaml.CSafeLoader))


def _text(value: JSON) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)


# ------------------------------------------------------------------------------------------------------------- queries


def _query(command: Command, batch: Batch) -> Answers:
    """Return the values of queries; a run ends at the first error, and the next run starts after it."""
    found: Answers = {}
    with TemporaryDirectory(prefix="differential-") as place:
        folder = Path(place)
        (folder / "input.json").write_text(encode(batch.resources[0]), encoding="utf-8")
        start = 0
        while start < len(batch.queries):
            rest = batch.queries[start:]
            _, out, err = command.run(["jp", "query", "--compact", "--input", "input.json", *rest], folder)
            lines = out.splitlines()
            values = [lines[index + 1] for index in range(0, len(lines) - 1, 2) if lines[index].startswith("#")]
            for query, value in zip(rest, values, strict=False):
                found[Key("query", rule=query)] = Answer("value", _text(json.loads(value)))
            start += len(values)
            if start < len(batch.queries):
                found[Key("query", rule=batch.queries[start])] = Answer("error", _last_line(err))
                start += 1
    return found
