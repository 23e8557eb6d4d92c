# ruff: noqa: E501 - texts of the source stand here as they are there
"""The guards of the web interface and its notifications: access to data (I1), secrets (I4), and inert texts (I10)."""

from __future__ import annotations

from typing import Final

from tests.security.guards.guard import guard

__all__ = ["WEB"]

_TARGETS: Final = "tests/unit/ui/notifications/targets"
_KINDS: Final = "ui/notifications/targets"

WEB: Final = (
    guard(
        "I1", "views are shown to those they name",
        "tests/unit/ui/server/test_viewlabels.py::test_a_view_is_shown_to_those_it_names",
        ("ui/server/app.py", "for view in self._views if is_admitted(view.admission)]", "for view in self._views]"),
    ),
    guard(
        "I1", "properties and labels are counted in scope",
        "tests/unit/ui/store/test_keyfacets.py::test_results_out_of_scope_have_no_keys",
        ("ui/store/selection.py", "return both(series_condition(self._connection.dialect, selected, table), "
         "self.allowed(table))", "return series_condition(self._connection.dialect, selected, table)"),
    ),
    guard(
        "I10", "texts in cards of Google Chat are escaped",
        f"{_TARGETS}/test_chats.py::test_google_chat_texts_of_results_are_escaped",
        (f"{_KINDS}/googlechat.py", "return html_text(clip(text, most))", "return clip(text, most)"),
    ),
    guard(
        "I4", "the token of a bot is nothing but a token",
        f"{_TARGETS}/test_chats.py::test_the_token_of_a_bot_is_nothing_else",
        (f"{_KINDS}/telegram.py", "if _TOKEN.fullmatch(token) is None:", "if False:"),
    ),
    guard(
        "I4", "credentials of another form are in no error",
        f"{_TARGETS}/test_gcs.py::test_credentials_of_another_form_are_not_shown",
        (f"{_KINDS}/gcs.py", 'raise UsageError("`credentials` must be the JSON of a key of a service account") from None',
         'raise UsageError(f"`credentials` must be the JSON, not {text}") from None'),
    ),
    guard(
        "I11", "a bug of background work starts it again",
        "tests/unit/ui/test_leading.py::test_a_bug_of_background_work_starts_it_again",
        ("ui/leading.py", "        except* Exception:\n", "        except* StopAsyncIteration:\n"),
    ),
    guard(
        "I11", "a bug of the queue of a target ends nothing",
        "tests/unit/ui/notifications/test_dispatcher.py::test_a_bug_of_one_delivery_ends_nothing",
        ("ui/notifications/dispatcher.py", "            except Exception as error:\n                # what the queue",
         "            except StopAsyncIteration as error:\n                # what the queue"),
    ),
    guard(
        "I11", "a bug of a keepalive ends nothing",
        "tests/unit/ui/notifications/test_dispatcher.py::test_a_bug_of_a_keepalive_ends_nothing",
        ("ui/notifications/dispatcher.py", "            except Exception as error:\n                # a bug in one target must not stop the others\n                self._open",
         "            except StopAsyncIteration as error:\n                self._open"),
    ),
    guard(
        "I2", "names of streams are nothing but names", f"{_TARGETS}/test_aws.py::test_names_are_nothing_but_names",
        (f"{_KINDS}/aws.py", "if _NAME.fullmatch(stream) is None:", "if False:"),
    ),
)  # fmt: skip
