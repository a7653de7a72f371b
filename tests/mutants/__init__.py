"""Planted faults: deliberate bugs, each of which a named case must catch (`make mutants`)."""
