"""What a person sees in a terminal: tables, answers and cards, fitted to its width."""
