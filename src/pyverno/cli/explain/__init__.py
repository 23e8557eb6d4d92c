"""`pyverno explain`: why each rule says what it says about a resource, and what would have to change."""
