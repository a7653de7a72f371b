"""Which lines of docs/contract.md are shown by a test that passes."""
