"""Whose error it is: the call's own, inherited, or none, measured by repeating calls against the floors."""
