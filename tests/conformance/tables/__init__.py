"""One adapter per table: it reads a row, runs the product, and returns the row's claim beside the actual result."""
