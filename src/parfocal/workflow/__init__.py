"""The stages put together: one function per question a user asks."""
