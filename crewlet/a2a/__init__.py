"""Agents among themselves: one question, one answer, then the channel closes (docs/adr/0014)."""
