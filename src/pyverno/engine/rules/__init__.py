"""Parts of ClusterPolicy rules at work in a review: context entries, conditions, preconditions and exceptions."""
