"""What to write: the new line of the user's own source, found and changed by its syntax tree."""
