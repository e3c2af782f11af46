"""runs.csv: every run behind a table, with its values."""

import csv
import io

from robustmd.report.aggregate import Section
from robustmd.report.many import is_many
from robustmd.report.messages import said
from robustmd.report.names import clean
from robustmd.report.quantities import table_quantities
from robustmd.report.table import measured_as


def runs_csv(section: Section) -> str:
    """From a mean back to metrics.csv: one line a run, the values that the mean is of, and the
    iterations whose measurements they are."""
    columns = table_quantities(section.domains, section.runs)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    names = [clean(column.name) for column in columns]
    many = is_many(section.domains)
    worst = ["worst_domain"] if many else []
    writer.writerow(["path", "method", "seed", "iterations", *names, *worst, "warnings"])
    for group in section.groups:
        for label, quantities in measured_as(group, columns):
            for one in group.selected:
                path = clean(one.run.path.relative_to(one.run.root).as_posix())
                chosen = " ".join(map(str, one.iterations(quantities[-1].split)))
                values = [quantity.of(one) for quantity in quantities]
                if many:
                    worst = [clean(one.worst_domain(quantities[-1].split))]
                warned = clean("; ".join(said(one.run, "warnings")))
                writer.writerow([path, label, one.seed, chosen, *values, *worst, warned])
    return out.getvalue()
