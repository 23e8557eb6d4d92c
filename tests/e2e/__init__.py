"""Processes that talk to each other: the sandbox and its clients."""
