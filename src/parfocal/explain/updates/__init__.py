"""Rules of update, computed again without a framework: how exact they can be, and what they are set to."""
