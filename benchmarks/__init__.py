"""Benchmarks: one file a question, one runner, ratios of things measured in one run."""
