"""The analysis: from records to results, comparisons and ranks."""
