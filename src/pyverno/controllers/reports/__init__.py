"""The reports controller: background scan of what exists, and reports made of the results of all sources.

Level-triggered by object: the desired report is computed from the current object, policies and ephemeral reports. Only
the engine evaluates policies.
"""
