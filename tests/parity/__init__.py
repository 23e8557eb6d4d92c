"""Every golden case through every front door: doors that see the same facts must give the same results."""
