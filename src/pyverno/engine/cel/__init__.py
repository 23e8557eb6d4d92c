"""CEL at work in a review: sessions of expressions, match constraints, exceptions, and reads of the cluster."""
