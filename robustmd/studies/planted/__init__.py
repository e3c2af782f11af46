"""When does which method help? Synthetic domains whose worst-case optimum a solver knows."""
