"""One file per ability of a rule.

An action gets a `Run` and returns verdicts; it reads a cluster through the run's broker and describes effects. It must
never perform one, nor decide whether a request is allowed.
"""
