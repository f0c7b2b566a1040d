"""Feeding: event data from a file to a network, by Tonic's datasets, transforms and caches and PyTorch's DataLoader."""
