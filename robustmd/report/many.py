"""Many domains: from which number on they are summarised, and what they are called together.

Tables, figures and pages have a column, a line or a word for each of at most `MOST_NAMED` domains.
Of more they show the worst, the worst tenth and the mean; the numbers of each are in domains.csv,
table.csv and runs.csv.
"""

from collections.abc import Sequence

# Three columns a domain: eight make a table of 28, which a wide screen just holds, and eight lines
# are what one panel can tell apart without a colour seen twice.
MOST_NAMED = 8


def is_many(domains: Sequence[object]) -> bool:
    """Whether they are summarised."""
    return len(domains) > MOST_NAMED


def domains_text(domains: Sequence[str]) -> str:
    """ "mnist, svhn"; "1,000 domains, rotate_0_sigma_0 to rotate_352.8_sigma_76" of many."""
    if not is_many(domains):
        return ", ".join(domains)
    return f"{len(domains):,} domains, {domains[0]} to {domains[-1]}"


def some_text(names: Sequence[str]) -> str:
    """ "a, b, c" of at most `MOST_NAMED`; "a, b, c and 37 more" of more."""
    if not is_many(names):
        return ", ".join(names)
    return f"{', '.join(names[:3])} and {len(names) - 3:,} more"


def worst_domain_words(domains: Sequence[str]) -> str:
    """What a caption says of the summary; "" where every domain is shown."""
    if not is_many(domains):
        return ""
    count = tenth(len(domains))
    return (
        f" Of {len(domains):,} domains the worst tenth is the mean over the {count:,} "
        "with the largest loss or lowest accuracy, within each measurement as the worst is. Worst "
        "domain: the one with the lowest test accuracy in most runs, and in how many. Each "
        "domain's numbers are in domains.csv."
    )


def tenth(count: int) -> int:
    """⌈K/10⌉, how many domains the worst tenth of K are."""
    return -(-count // 10)
