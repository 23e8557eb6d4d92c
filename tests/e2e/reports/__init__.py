"""The reports controller with an API server: convergence under changes, kills and leader changes."""
