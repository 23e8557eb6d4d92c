"""Bucket `chainsaw`: scenarios of Kyverno's end-to-end tests, against a sandbox and the admission controller.

Steps are performed as chainsaw performs them, as a user of a cluster, over HTTPS. The package must never look into the
product to decide whether a scenario holds.
"""
