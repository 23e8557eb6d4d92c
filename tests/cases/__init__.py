"""Golden cases: folders `<topic>/<claim>/` of policies and objects with everything that the engine must say of them.

`python -m tests.cases --write` rewrites every `expected.yaml`; people review the diff. A folder's name is a claim, and
a comment at the top of its policy says why the outcome is the right one.
"""
