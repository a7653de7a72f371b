"""Work that comes by the clock: cron entries of roles and units, each fire once in the fleet."""
