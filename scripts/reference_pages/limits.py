"""The page of limits: the constants that bound what input and policies may use."""

from __future__ import annotations

import importlib

from pyverno.lang.cel.work import LONGEST_CALL
from pyverno.lang.jmespath import FUNCTIONS
from pyverno.lang.jmespath.cost import ITEM
from scripts.reference_pages.markdown import code, page, table

__all__ = ["limits"]

_KIB = 1024

# what is limited, module, constant, unit
_ROWS: tuple[tuple[str, str, str, str], ...] = (
    ("size of one input file", "offline.files", "MAX_FILE_BYTES", "bytes"),
    ("folders in each other in a folder that is searched", "offline.folderrules", "MAX_FOLDER_DEPTH", "levels"),
    ("size of one download", "offline.manifests", "MAX_DOWNLOAD_BYTES", "bytes"),
    ("redirects of one download", "offline.manifests", "MAX_REDIRECTS", ""),
    ("time of one clone of a git repository", "offline.git.process", "MAX_CLONE_SECONDS", "seconds"),
    ("files of one git repository, and what git keeps of it", "offline.git.process", "MAX_CLONE_BYTES", "bytes"),
    ("files and folders of one git repository", "offline.git.process", "MAX_CLONE_FILES", ""),
    ("folders in each other in a git repository", "offline.git.process", "MAX_CLONE_DEPTH", "levels"),
    ("memory of git, on Linux", "offline.git.process", "MAX_GIT_MEMORY", "bytes"),
    ("size of one YAML or JSON text", "kube.yaml.documents", "MAX_BYTES", "bytes"),
    ("one page of a list of the API server", "cluster.answers.pages", "MAX_PAGE_BYTES", "bytes"),
    ("any other answer of the API server", "cluster.answers.reading", "MAX_ANSWER_BYTES", "bytes"),
    ("depth of a document", "kube.yaml.events", "MAX_DEPTH", "levels"),
    ("depth of brackets and braces in YAML that is not JSON", "kube.yaml.events", "MAX_FLOW_DEPTH", "levels"),
    ("a JSON text of more than 1,024 levels", "kube.json", "MAX_SCANNED_BYTES", "bytes"),
    ("aliases of a YAML document, in relation to its size", "kube.yaml.events", "MAX_ALIAS_RATIO", "times"),
    ("what aliases of a YAML document may expand to", "kube.yaml.events", "MAX_ALIAS_BYTES", "bytes"),
    ("elements that a JSON patch may pad a list with", "kube.patch.jsonpatch", "MAX_PADDING", ""),
    ("nodes that the copies of one JSON patch may have", "kube.patch.jsonpatch", "MAX_COPIED_NODES", ""),
    ("expression and template steps of one review", "lang.runtime", "MAX_STEPS", ""),
    (
        "one text or list that an expression makes, and what rules add to an object",
        "lang.runtime",
        "MAX_TEXT_BYTES",
        "bytes",
    ),
    ("all context entries of a review together", "lang.runtime", "MAX_CONTEXT_BYTES", "bytes"),
    ("foreach elements of one review", "lang.runtime", "MAX_ELEMENTS", ""),
    ("questions to the cluster and to the network of one review", "lang.runtime", "MAX_CALLS", ""),
    ("depth of a JMESPath expression", "lang.jmespath.parser", "MAX_DEPTH", "levels"),
    ("a text that `random()` makes", "lang.regex.generator", "MAX_LENGTH", "bytes"),
    ("a regular expression", "lang.regex.compiler", "MAX_PATTERN", "bytes"),
    ("length of a CEL expression", "lang.cel.syntax.source", "MAX_CODE_POINTS", "characters"),
    ("depth of a CEL expression", "lang.cel.syntax.parser", "MAX_DEPTH", "levels"),
    ("cost of one CEL expression", "lang.cel.runtime.evaluation", "PER_EXPRESSION", "units"),
    ("cost of all CEL expressions of a policy", "engine.cel.session", "POLICY_COST", "units"),
    ("cost of the match conditions of a policy", "engine.cel.session", "CONDITIONS_COST", "units"),
    ("variables inside of values of variables", "lang.template.syntax", "MAX_ROUNDS", "rounds"),
    ("lines of one generated pass-check", "lang.codegen", "MAX_LINES", ""),
    ("text that `gzip.decompress` makes in CEL", "lang.cel.libraries.kyverno.data", "MAX_DECOMPRESSED", "bytes"),
    ("the same in relation to the data", "lang.cel.libraries.kyverno.data", "MAX_RATIO", "times"),
    ("values of one AdmissionReview", "kube.admissionreview", "MAX_VALUES", ""),
    ("bytes of an image's configuration", "registry.documents", "MAX_CONFIGURATION", "bytes"),
    ("values of one document of a registry", "registry.documents", "MAX_VALUES", ""),
    ("values of one signed document or attestation", "images.verification.strictjson", "MAX_VALUES", ""),
    ("values of one answer of a service", "cluster.egress", "MAX_VALUES", ""),
    ("policies and exceptions of one `pyverno analyze`", "compiler.analysis.sampling", "MOST_POLICIES", ""),
    ("pairs of rules that one of its checks searches", "compiler.analysis.sampling", "MOST_PAIRS", ""),
    ("text of one result of a rule", "engine.result", "MAX_MESSAGE", "bytes"),
    ("text of a denial in an answer of the webhook", "kube.admissionreview", "MAX_MESSAGE_BYTES", "bytes"),
    ("plans that a policy set remembers", "engine.policyset", "MEMO_LIMIT", ""),
)


def limits() -> str:
    """Return the table of limits with their values."""
    rows = [
        (what, _amount(getattr(importlib.import_module(f"pyverno.{module}"), name), unit), code(f"{module}.{name}"))
        for what, module, name, unit in _ROWS
    ]
    functions = [(code(name), f"{each.cost.most:,}") for name, each in sorted(FUNCTIONS.items()) if each.cost.most]
    return page(
        "Limits",
        "What exceeds a limit is an error with a text of its own (`DocumentError`, `BudgetExceededError`), or an ERROR "
        "result of the rule at fault. The limits of a review are the defaults of `pyverno.lang.runtime.Budget`.",
        table(("what", "limit", "constant"), rows),
        "## Functions of JMESPath",
        "Functions that take long for their input take this much of it, in all arguments together: bytes of texts, and "
        f"{ITEM} for each item of a list or map. All others are limited by the steps and bytes of the review. A call "
        f"in CEL that would take more than {LONGEST_CALL:,} steps is refused before it begins.",
        table(("function", "limit"), functions),
    )


def _amount(value: int, unit: str) -> str:
    if unit == "bytes":
        for size, name in ((_KIB**2, "MiB"), (_KIB, "KiB")):
            if value % size == 0:
                return f"{value // size} {name}"
    return f"{value:,} {unit}".strip()
