"""The reports controller: background scan of what exists, and reports made of the results of all sources.

Level-triggered by object: what a report should hold is computed from the object, the policies and the ephemeral reports
of the moment. Only the engine judges.
"""
