"""snnbench: times spiking-network libraries, and only on work that was proved to be the same work."""

__version__ = "0.2.0"
