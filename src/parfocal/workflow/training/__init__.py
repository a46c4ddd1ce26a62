"""Two trainings step by step: every phase of a step by itself, on the reference's own state."""
