"""Order-private shuffling (E): groups, orders, and the Mallows shuffle."""
