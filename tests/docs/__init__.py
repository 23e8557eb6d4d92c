"""What the guide says, run."""
