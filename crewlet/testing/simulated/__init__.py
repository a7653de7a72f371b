"""The twin as the broker of a simulated fleet, and what its nodes run."""
