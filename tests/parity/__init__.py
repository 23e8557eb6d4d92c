"""Every golden case through every front door: where a door sees the same facts, it must say the same."""
