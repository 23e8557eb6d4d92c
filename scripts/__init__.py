"""Commands that work on the repository itself; nothing here is part of the package."""
