"""Every decision of the runtime, without I/O: an input goes in, a list of effects comes out."""
