"""Compares pyverno with a Kyverno executable on generated policies, resources and expressions.

`python -m tests.differential` needs the path of an executable in `KYVERNO_EXECUTABLE`; nothing here fetches or builds
one.
"""
