"""Event data for training: the files of the Heidelberg spiking datasets, and generated files of the same layout."""
