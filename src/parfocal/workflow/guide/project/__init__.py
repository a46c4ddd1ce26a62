"""The files that ``init`` writes, as texts: they are run in the user's folder, never here."""
