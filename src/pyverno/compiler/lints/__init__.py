"""Lints: checks for policies that are valid but do not mean what their authors want.

One lint is one module of `checks`: its docstring is its page in the reference, its row is in `registry`, its test
is the file of the same name. A lint never rejects a policy, and reports only what is certain.
"""

from __future__ import annotations
