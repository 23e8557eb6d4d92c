"""Patterns: the tree-shaped language of `validate.pattern`, its anchors, the leaves with their small operators, the
overlays of strategic merge mutation, and the operators of conditions.

It compares plain values with plain values and finds where they differ. It must never resolve a variable or know
a rule, and text of a policy or a resource must never become source code.
"""
