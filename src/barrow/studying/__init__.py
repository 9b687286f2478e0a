"""Measure the same work in several settings, and say which is best."""
