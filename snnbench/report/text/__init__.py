"""Reports in text: tables for a terminal, in Markdown, CSV and JSON."""
