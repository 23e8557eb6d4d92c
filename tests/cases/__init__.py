"""Golden cases: folders `<topic>/<claim>/` of policies and objects with the complete results that the engine must give.

`python -m tests.cases --write` rewrites every `expected.yaml`; people review the diff. A folder's name is a claim, and
a comment at the top of its policy explains why the outcome is the right one.
"""
