# ruff: noqa: E501 - texts of the source stand here as they are there
"""The guards that keep a fault of a front door to one answer, one object or one check (F4, I11)."""

from __future__ import annotations

from typing import Final

from tests.security.guards.guard import guard

__all__ = ["DOORS"]

_SERVER: Final = "webhook/server.py"
_LAW: Final = "webhook_faults::test_no_bug_of_a_door_takes_an_answer_back"

DOORS: Final = (
    guard(
        "F4", "what follows an answer never takes it back", _LAW,
        (_SERVER, "            if settled:  # what follows an answer never takes it back\n", "            if False:\n"),
        ("telemetry/observer.py", "        notify(*arguments, **named)\n    except Exception:\n", "        notify(*arguments, **named)\n    except ZeroDivisionError:\n"),
    ),
    guard(
        "F4", "an answer that cannot be written is its verdict", _LAW,
        (_SERVER, "        if answer.allowed and answer.patch:\n            raise\n", "        raise\n"),
    ),
    guard(
        "F4", "an observer that breaks is one of several", _LAW,
        ("telemetry/observer.py", "        notify(*arguments, **named)\n    except Exception:\n", "        notify(*arguments, **named)\n    except ZeroDivisionError:\n"),
    ),
    guard(
        "F4", "an event that cannot be written ends no others", f"webhook_faults::test_work_after_answers_goes_on {_LAW}",
        ("controllers/runtime/events.py", "            except Exception:  # one event must not end the writing of the others\n",
         "            except ZeroDivisionError:\n"),
    ),
    guard(
        "I11", "a bug is one error and an exit code", "command_line_faults::test_a_bug_is_one_error_and_never_success",
        ("cli/errors.py", "    except Exception as error:\n        report_error(bug_text(error))\n        return _flush(1)\n", ""),
    ),
    guard(
        "I11", "a bug in one suite leaves the others", "command_line_faults::test_a_bug_in_one_suite_leaves_the_other_suites",
        ("cli/test/run.py", "    except Exception as error:  # a bug ends one suite, and the run fails\n", "    except ZeroDivisionError as error:\n"),
    ),
    guard(
        "I11", "a bug in one check leaves the others", "command_line_faults::test_a_bug_in_one_check_leaves_the_other_checks",
        ("compiler/lints/run.py", "    except Exception as error:\n        fault = fault_of(error)\n", "    except ZeroDivisionError as error:\n        fault = fault_of(error)\n"),
    ),
    guard(
        "I11", "an error of the operating system is a bug that names no file",
        "command_line_faults::test_an_error_of_the_operating_system_names_no_file",
        ("cli/errors.py", "        report_error(bug_text(error))\n        return 1\n    report_error(f\"cannot write", "        raise error\n    report_error(f\"cannot write"),
    ),
    guard(
        "I11", "a bug in one resource leaves the others", "command_line_faults::test_a_bug_in_one_resource_leaves_the_others",
        ("cli/apply/judge.py", "        except Exception as error:  # a bug in one resource", "        except ZeroDivisionError as error:  # a bug in one resource"),
    ),
    guard(
        "I11", "a bug in a part of the output leaves the others", "command_line_faults::test_a_bug_in_one_result_leaves_the_other_results",
        ("report/rendered.py", "        except Exception as error:  # a bug in one result", "        except ZeroDivisionError as error:  # a bug in one result"),
    ),
    guard(
        "I9", "what has no end is not read in folders", "file_names::test_no_file_without_an_end_is_read",
        ("offline/folderrules.py", "    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)\n", "    return False\n"),
        may_hang=True,
    ),
    guard(
        "I9", "a pipe that a command line names is read", "file_names::test_a_pipe_that_a_command_line_names_is_read",
        ("offline/files.py", "else file.read(MAX_FILE_BYTES + 1)\n", 'else b""\n'),
    ),
    guard(
        "I11", "a bug in a conversion leaves the others", "command_line_faults::test_a_bug_in_one_conversion_leaves_the_other_conversions",
        ("cli/migrate/run.py", "    except Exception as error:  # a bug in one document", "    except ZeroDivisionError as error:  # a bug in one document"),
    ),
    guard(
        "F4", "a bug in a reconcile is repeated", "controller_faults::test_a_bug_of_a_controller_costs_a_delay",
        ("controllers/runtime/reconcile.py", '        except Exception:\n            log.exception("a reconcile broke"', '        except ZeroDivisionError:\n            log.exception("a reconcile broke"'),
    ),
    guard(
        "I11", "an answer of the playground that cannot be written is an error",
        "playground_faults::test_an_answer_that_cannot_be_written_is_an_error playground_faults::test_a_bug_in_the_playground_is_an_error_and_never_a_pass",
        ("ui/playground/worker.py", '    except Exception as error:\n        return _written({"error": "internal error of the playground"',
         '    except ZeroDivisionError as error:\n        return _written({"error": "internal error of the playground"'),
    ),
    guard(
        "I7", "an image that cannot be verified is an error or a failure", "image_faults::test_no_bug_lets_an_image_through",
        ("engine/engine.py", "        except Exception as error:\n            return (error_verdict(error),)", "        except Exception:\n            return ()"),
    ),
    guard(
        "I7", "a signed image is admitted", "image_faults::test_an_image_that_is_signed_is_admitted",
        ("images/verification/counting.py", "return 0 < self.required <= self.verified", "return False"),
    ),
)  # fmt: skip
