"""timm's models with ports to paddle, for the sweep: forward passes written by hand, layers by table."""
