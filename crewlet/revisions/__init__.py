"""Revisions of a company: which one is active, what changes between two, who has fallen out.

What is decided without asking anybody is decided in functions (`difference`, `standing`, `start`,
`retirement`); the coordination store is reached by `store` and `roster`.
"""
