"""index.html: the report as one self-contained page. `write_html(report, images)` makes its text.

markup    HTML out of text, escaped
document  head, policy, data sets, what is left out
section   one data set: words, forest, results, figures, runs
look, sorting  the style sheet and the script
"""

from robustmd.report.page_html.document import write_html

__all__ = ["write_html"]
