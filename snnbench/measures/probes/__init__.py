"""Fixed work of no library, timed in each timing process: it shows when the machine has changed."""
