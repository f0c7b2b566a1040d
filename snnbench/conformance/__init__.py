"""Conformance: whether a library's importer of NIR graphs runs the network that the graph states."""
