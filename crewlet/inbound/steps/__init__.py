"""The steps between a partition and its turn, each by itself: crewlet.inbound.dispatch has their
order."""
