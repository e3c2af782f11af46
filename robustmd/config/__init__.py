"""From what a user types to the runs: imports, composed configs, sweeps of rows."""
