"""Tables, curves and a page from the run directories of an outputs folder.

`robustmd.report.write.write_report(outputs, out)` makes all of it; `robustmd report` is
the command line. This package imports nothing by itself: `robustmd report --help` stays light.
"""
