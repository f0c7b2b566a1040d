"""The proof that the answers of passes are the reference's: the exam, the spot check and fresh passes."""
