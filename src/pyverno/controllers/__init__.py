"""Controllers: watches, reconcile loops and writes to a cluster.

Each controller compares the state of the cluster with the desired state and writes the difference. Verdicts come from
the engine only; a controller must never judge an object itself.
"""
