"""The cluster's own work: the controllers of the sandbox, its one node and its kubelet, as in-process loops.

Each controller reads the store through a client and writes through the whole admission chain, as its own user. What
it wants is worked out by functions of what it sees, which are tested alone. This package must never write past the
API server, know Kyverno, or keep anything that cannot be read again from the store.
"""
