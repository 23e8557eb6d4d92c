"""Generate rules at work in a cluster."""
