"""Lowering of ClusterPolicies, cleanup policies and their exceptions: one module per part of a rule."""
