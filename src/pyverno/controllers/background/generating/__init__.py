"""Generate rules and GeneratingPolicies: generated objects are brought to the state of their rules, and kept in it.

`generator.py` does the work for one trigger: it finds the trigger, has the engine evaluate the rules and performs their
effects. What wakes it: UpdateRequests (`handlers.py`), changes of generated objects (`downstreams.py`) and of their
sources (`sources.py`), and changes of policies (`policies.py`).
"""
