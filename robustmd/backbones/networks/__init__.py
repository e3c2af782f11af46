"""The networks themselves, and the weights that they begin with."""
