"""The admission controller as processes beside a sandbox: what an operator does to it, and what users then see."""
