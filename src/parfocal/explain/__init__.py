"""Why two calls differ: hypotheses, each tested by computing again with one thing changed."""
