"""F4, I11 in the playground: a bug in the worker is an error of the page, and never a milder verdict."""

from __future__ import annotations

import json

from pyverno.kube.json import JSONObject
from pyverno.ui.authoring.suggestions import complete, hover
from pyverno.ui.playground.importing import import_text
from pyverno.ui.playground.review import review_texts
from pyverno.ui.playground.worker import Task, answer
from tests.security.faultsites import Sites, modules_of, sampled
from tests.security.test_command_line_faults import CEL, CHANGING, POLICY, RESOURCES

TASKS: dict[str, Task] = {
    "review": review_texts,
    "complete": complete,
    "hover": hover,
    "import": lambda body: import_text(body["text"]),
}
REQUESTS: dict[str, JSONObject] = {
    "rules": {"review": {"policies": POLICY + CHANGING, "resources": RESOURCES}},
    "an explanation": {"review": {"policies": POLICY, "resources": RESOURCES, "explain": True}},
    "CEL": {"review": {"policies": CEL, "resources": RESOURCES}},
}


class OddError(KeyError):
    """An exception whose text is a value."""

    def __init__(self) -> None:
        super().__init__("canary-5c1e")


def verdicts(found: JSONObject) -> list[tuple[str, bool, list[str]]]:
    """Return name, verdict and the statuses of results of every object."""
    return [
        (each["resource"]["name"], each["allowed"], [result["status"] for result in each["results"]])
        for each in found["answer"]["reviews"]
    ]


def test_a_bug_in_the_playground_is_an_error_and_never_a_pass() -> None:
    """Every function of the playground: the whole page is an error, or the verdicts are those without the bug."""
    sites = Sites(
        modules=lambda: modules_of("pyverno.ui.playground", "pyverno.ui.authoring"),
        owners=(),
        accepts=lambda site: (
            not site.startswith(("pyverno.value.", "pyverno.lazyregex.", "pyverno.ui.playground.worker."))
        ),
    )
    problems: dict[str, str] = {}
    thrown = 0
    with sites.installed():
        for name, request in REQUESTS.items():
            answer(TASKS, request)
            sites.calls, sites.is_counting = {}, True
            usual = json.loads(answer(TASKS, request))
            sites.is_counting = False
            assert {False} == {allowed for _, allowed, _ in verdicts(usual)}
            for site in sampled(sites.calls, 40):
                for always in (False, True):
                    sites.arm(site, OddError, always=always)
                    text = answer(TASKS, request)
                    sites.disarm()
                    thrown += sites.thrown
                    found = json.loads(text)
                    if b"canary" in text:
                        problems[f"{name}: {site}"] = "it shows a value"
                    elif "answer" in found and verdicts(found) != verdicts(usual):
                        problems[f"{name}: {site}"] = f"{verdicts(found)}"
                    elif "answer" not in found and {"error", "fault"} != found.keys():
                        problems[f"{name}: {site}"] = f"{found}"
    assert {} == problems
    assert thrown >= 100


def test_an_answer_that_cannot_be_written_is_an_error() -> None:
    """A text that is no Unicode and a number that JSON has not: the worker lives, and says so."""
    for value in ("\ud800", 2**70, object()):
        found = json.loads(answer({"give": lambda _, value=value: {"a": value}}, {"give": {}}))  # type: ignore[misc]
        assert {"error": "internal error of the playground", "fault": "TypeError"} == found
    assert {"answer": {"a": 1}} == json.loads(answer({"give": lambda _: {"a": 1}}, {"give": {}}))
