"""The `pyverno` command: looks at the first words itself, so that the cheapest answers import nothing.

`pyverno --version` answers from here; what needs no click is left to `pyverno.cli.args.fastargv`, and everything
else to `pyverno.cli.root`. This module must never import anything at its top that is not
already loaded when Python starts.
"""

from __future__ import annotations

import gc
import os
import sys

# trust rows: command-line, environment, own-file, python-module

__all__ = ["main"]


def main() -> None:
    """Run the command line with `sys.argv`; always ends with SystemExit."""
    _prepare_streams()
    # processes that this one starts would look for modules in the working folder first, which may be a stranger's
    os.environ["PYTHONSAFEPATH"] = "1"  # guard: a process takes no module of the working folder
    arguments = sys.argv[1:]
    if arguments == ["--version"]:
        from pyverno.version import __version__

        sys.stdout.write(f"pyverno {__version__}\n")
        raise SystemExit(0)
    # a plain run makes a great many objects and no cycles worth finding, not even when the interpreter ends
    gc.disable()
    from pyverno.cli.args.fastargv import run_fast_path

    code = run_fast_path(arguments)
    if code is None:
        gc.enable()
        from pyverno.cli.root import run

        code = run(arguments)
    else:
        gc.freeze()
    raise SystemExit(code)


def _prepare_streams() -> None:
    """Let no character fail that a terminal or code page cannot show, and no stream be absent.

    Such a character is written as `\\u2502`. A stream that was closed by the caller takes everything and holds nothing.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115 - as long as the process
        elif mode == "w" and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


if __name__ == "__main__":
    main()
