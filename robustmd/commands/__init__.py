"""The commands, one file each: its arguments, and a call. `cli` finds them by their names."""
