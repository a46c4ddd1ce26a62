"""What was found, in words: text and JSON."""
