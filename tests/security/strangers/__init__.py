"""Tests that play a stranger: somebody who may write one thing that pyverno reads, and wants more than that.

A module for each stranger: the owner of a hostile repository, a forger with a socket to the webhook, a tenant with the
rights of a namespace's admin, somebody who writes to what is stored. Canaries in Secrets must never come out.
"""
