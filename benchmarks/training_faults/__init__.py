"""Planted mistakes in trainings, each with its clean twin, and what is said of them."""
