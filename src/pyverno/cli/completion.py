"""`pyverno completion`: scripts that let a shell complete commands and flags.

The scripts call the program itself for its commands and flags. This module must never run a shell.
"""

from __future__ import annotations

import click
from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete

from pyverno.cli.args.sections import command
from pyverno.cli.terminal import STDOUT
from pyverno.errors import UsageError

__all__ = ["completion", "completion_script"]

_VARIABLE = "_PYVERNO_COMPLETE"

# PowerShell gets its answers in the form of bash: lines `type,value`, for the words in COMP_WORDS.
_POWERSHELL = """\
Register-ArgumentCompleter -Native -CommandName pyverno -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)
    $words = @($commandAst.CommandElements | ForEach-Object { $_.ToString() })
    $position = if ($wordToComplete) { $words.Count - 1 } else { $words.Count }
    $saved = @($env:COMP_WORDS, $env:COMP_CWORD, $env:_PYVERNO_COMPLETE)
    try {
        $env:COMP_WORDS = $words -join "`n"
        $env:COMP_CWORD = $position
        $env:_PYVERNO_COMPLETE = "bash_complete"
        pyverno | ForEach-Object {
            $type, $value = $_ -split ",", 2
            if ($type -eq "plain") {
                [System.Management.Automation.CompletionResult]::new($value, $value, "ParameterValue", $value)
            }
        }
    } finally {
        $env:COMP_WORDS, $env:COMP_CWORD, $env:_PYVERNO_COMPLETE = $saved
    }
}
"""

_CLASSES: dict[str, type[ShellComplete]] = {"bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete}


def completion_script(shell: str, root: click.Command) -> str:
    """Return the script for a shell; raises UsageError for an unknown one."""
    if shell == "powershell":
        return _POWERSHELL
    if shell not in _CLASSES:
        raise UsageError(f'invalid argument "{shell}" for "pyverno completion"')
    # click's class for bash would run bash to read its version
    return ShellComplete.source(_CLASSES[shell](root, {}, "pyverno", _VARIABLE))


def _completion(shell: tuple[str, ...]) -> None:
    if len(shell) != 1:
        raise UsageError(f"accepts 1 arg(s), received {len(shell)}")
    STDOUT.write(completion_script(shell[0], click.get_current_context().find_root().command))


completion = command(
    "completion",
    "Print a script that lets a shell complete commands and flags.\n\nSHELL is bash, zsh, fish or powershell.",
    _completion,
    {},
    click.Argument(["shell"], nargs=-1, metavar="SHELL"),
    examples=(
        "source <(pyverno completion bash)",
        'pyverno completion zsh > "${fpath[1]}/_pyverno"',
        "pyverno completion fish > ~/.config/fish/completions/pyverno.fish",
        "pyverno completion powershell | Out-String | Invoke-Expression",
    ),
)
