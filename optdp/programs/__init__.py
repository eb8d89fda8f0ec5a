"""Linear programs as arrays, and the backends that solve them."""
