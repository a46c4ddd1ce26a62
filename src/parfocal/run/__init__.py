"""The data model of a recorded run and its storage; reads foreign files without trusting them."""
