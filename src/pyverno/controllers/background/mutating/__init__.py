"""Rules and MutatingPolicies that change existing objects: on requests, when a policy changes, and at intervals.

`handlers.py` works on UpdateRequests, `policies.py` creates them for changed policies. Requests are made in
`triggers.py`, `subjects.py` lists the objects that rules may match, and `changes.py` performs what rules want.
"""
