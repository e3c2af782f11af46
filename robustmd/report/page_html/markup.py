"""HTML that cannot be broken by anybody's text: what is not `Markup` is escaped."""

import html

from robustmd.errors import printable


class Markup(str):
    """HTML made by this package; any other string is text."""

    __slots__ = ()


def escaped(content: object) -> Markup:
    """Text as HTML shows it; `Markup` stays as it is."""
    return content if isinstance(content, Markup) else Markup(html.escape(printable(content)))


def join(*contents: object) -> Markup:
    """One after the other."""
    return Markup("".join(map(escaped, contents)))


def el(tag: str, *contents: object, **attributes: object) -> Markup:
    """`el("th", "a<b", scope="col")`: an element. An attribute's underscores become hyphens, a
    trailing one is dropped (`class_`); None leaves it out, True gives its name alone."""
    shown = []
    for key, value in attributes.items():
        name = key.rstrip("_").replace("_", "-")
        if value is True:
            shown.append(f" {name}")
        elif value is not None and value is not False:
            shown.append(f' {name}="{html.escape(printable(value))}"')
    return Markup(f"<{tag}{''.join(shown)}>{join(*contents)}</{tag}>")


def void(tag: str, **attributes: object) -> Markup:
    """An element that has no end, such as img."""
    return Markup(el(tag, **attributes).removesuffix(f"</{tag}>"))


def scrolling(table: Markup, label: str) -> Markup:
    """A wide table in a box of its own that scrolls, by keyboard as well."""
    return el("div", table, class_="scroll", tabindex="0", role="region", aria_label=label)
