"""What rules written in CEL do: one module per action."""
