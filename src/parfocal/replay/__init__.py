"""Running recorded calls again: on given inputs and gradients, in another dtype, or changed."""
