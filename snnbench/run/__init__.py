"""The run: from a plan to a recording, on this machine or on the nodes of a cluster."""
