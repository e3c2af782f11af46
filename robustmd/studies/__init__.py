"""The two studies on small problems: theory (rates and bounds), planted (known optima)."""
