"""Kubernetes as values: resources, kinds, quantities, durations, selectors, documents, patches.

Values and pure functions over plain JSON values: no policies, no files, no network, no logs.
"""
