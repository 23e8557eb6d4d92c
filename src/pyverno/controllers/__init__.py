"""Reconcile loops around the webhook: what is watched, what is written, and who may write it.

Each controller compares what is with what should be and writes the difference. Verdicts come from the engine only; a
controller must never hold a rule of its own about objects.
"""
