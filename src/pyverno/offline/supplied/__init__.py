"""What files supply to a run in place of a cluster: variables, namespaces, subresources."""
