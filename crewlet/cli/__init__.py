"""The command line: `crewlet up` runs a node, the other commands speak to it."""
