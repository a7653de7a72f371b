"""Runs: work that outlives the turn that started it, and the hold that it puts on its seat."""
