"""One adapter per table: it reads a row, asks the product, and gives what the row claims beside what it got."""
