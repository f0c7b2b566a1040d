"""The energy of a pass, where the machine counts it."""
