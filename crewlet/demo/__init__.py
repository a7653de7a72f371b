"""What `crewlet up --demo` runs: a small company that needs no outside service."""
