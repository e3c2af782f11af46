"""The stopwatch: what a run's iteration costs beside the bare model, measured in one process."""
