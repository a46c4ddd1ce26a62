"""The folder that is handed in at the end of a reproduction: the guide's five checkpoints as files."""
