"""Which call of the reference is which call of the port."""
