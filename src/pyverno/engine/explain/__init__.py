"""Explanations of a review: what each rule looked at, what it found, and the smallest change that would turn it.

A review that is explained runs a second time, with rules whose parts record what they decide. The loop, the matchers
and the exact closures are those of every review; the fast tier is left out. Other reviews pay nothing
for it. What came from the cluster, a registry or a Secret is named here and never held.
"""
