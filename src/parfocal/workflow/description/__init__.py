"""What a model consists of, and which module of one model is which of another."""
