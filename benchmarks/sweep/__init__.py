"""How large the noise of correct ports is, and how far above it planted mistakes are."""
