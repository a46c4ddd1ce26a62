"""The guide's eleven steps and five checkpoints: a plan file, and a command that knows what comes next."""
