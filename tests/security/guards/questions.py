"""The guards of I17: a request is a question; what lasts is read from the API server."""

from __future__ import annotations

from typing import Final

from tests.security.guards.guard import Guard, guard

__all__ = ["QUESTIONS"]

_FORGER: Final = "tests/security/strangers/test_forger.py"
_FORGED: Final = f"{_FORGER}::test_nothing_follows_from_a_forged_review"
_WRITTEN: Final = f"{_FORGER}::test_an_update_request_of_a_stranger_is_a_question_too"
_REAL: Final = f"{_FORGER}::test_what_the_api_server_stores_is_followed"
_USER: Final = f"{_FORGER}::test_a_user_who_may_not_send_a_request_did_not_send_it"
_EVIDENCE: Final = "controllers/evidence.py"
_WRITER: Final = "controllers/admission/updaterequestwriter.py"

QUESTIONS: Final[tuple[Guard, ...]] = (
    guard("I17", "a created object is the one of the request", f"{_FORGED}[CREATE-of-another-uid]", (_EVIDENCE,)),
    guard("I17", "an old version existed", f"{_FORGED}[UPDATE-of-a-version-that-never-was]", (_EVIDENCE,)),
    guard("I17", "a deletion happened", f"{_FORGED}[DELETE-of-what-stays]", (_EVIDENCE,)),
    guard("I17", "a user sent what the API server permits", _USER, (_EVIDENCE, "None")),
    guard("I17", "what leaves no trace needs a known caller", f"{_FORGED}[exec]", (_WRITER, "True")),
    guard("I17", "requests that are confirmed trigger work", _REAL, (_WRITER,)),
    guard(
        "I17",
        "background: targets change for confirmed requests",
        f"{_WRITTEN}[mutate-UPDATE-of-nothing]",
        ("controllers/background/mutating/triggers.py", "True"),
    ),
    guard(
        "I17",
        "background: objects are generated for confirmed requests",
        f"{_WRITTEN}[generate-UPDATE-of-another-object]",
        ("controllers/background/generating/generator.py", "True"),
    ),
    guard(
        "I17",
        "results count for the object that was judged",
        f"{_FORGED}[UPDATE-with-false-contents]",
        ("controllers/reports/reconciler.py", "True"),
    ),
    guard(
        "I17",
        "an event is of what the API server confirms",
        f"{_FORGED}[UPDATE-with-false-contents]",
        ("controllers/runtime/events.py",),
    ),
    guard(
        "I17",
        "a source leaves room for others",
        "tests/unit/controllers/runtime/test_outbox.py::test_a_source_leaves_room_for_others",
        ("controllers/runtime/outbox.py",),
    ),
    guard(
        "I17",
        "questions of a source are bounded",
        "tests/unit/controllers/admission/test_questions.py::test_questions_of_a_source_are_bounded",
        ("controllers/admission/questions.py",),
    ),
    guard(
        "I17",
        "refusals are logged at a limited rate",
        "tests/unit/controllers/admission/test_questions.py::test_refusals_are_counted_and_logged_at_a_limited_rate",
        ("controllers/admission/questions.py",),
    ),
)
