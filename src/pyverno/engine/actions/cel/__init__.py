"""The actions of rules written in CEL: one module per action."""
