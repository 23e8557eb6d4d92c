"""Explanations of a review: what each rule read and found, and the smallest change that flips its result.

A review that is explained runs a second time, with rules whose parts record what they decide. The loop, the matchers
and the exact closures are those of every review; the fast tier is left out. Other reviews pay nothing
for it. Values from the cluster, a registry or a Secret are named here, never stored.
"""
