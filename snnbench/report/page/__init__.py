"""The page: recordings as one HTML file, and its charts as figures."""
