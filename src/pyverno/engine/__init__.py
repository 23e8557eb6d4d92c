"""The pure engine: one loop that judges every policy kind, for every front door.

It knows compiled rules, requests and the `Host` through which rules read a cluster. It must never import policy
documents, perform an effect, read a file or a clock, or open a connection.
"""
