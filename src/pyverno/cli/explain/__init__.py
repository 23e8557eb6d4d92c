"""`pyverno explain`: why each rule has its result for a resource, and what would have to change."""
