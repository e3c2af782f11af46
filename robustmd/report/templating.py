"""The templates of the pages, where every value is text: this is where it is escaped."""

from collections.abc import Callable, Iterable, Mapping
from importlib import resources

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from robustmd.errors import printable
from robustmd.report.names import markdown


def html_templates(*functions: Callable[..., object], **values: object) -> Environment:
    """Templates of HTML that have these functions, as filters too, and values. What is not `Markup`
    is escaped, and what would break a line, steer a terminal or turn the direction of text is
    written out."""
    return _templates(printable, functions, values, autoescape=True)


def markdown_templates(*functions: Callable[..., object], **values: object) -> Environment:
    """The same for Markdown, whose characters are escaped; `x | safe` is Markdown already."""
    return _templates(lambda value: markdown(str(value)), functions, values, autoescape=False)


def asset(name: str) -> str:
    """A file beside the templates, as it is."""
    return (resources.files("robustmd.report") / "templates" / name).read_text("utf-8")


def _templates(
    text: Callable[[object], str],
    functions: Iterable[Callable[..., object]],
    values: Mapping[str, object],
    *,
    autoescape: bool,
) -> Environment:
    made = Environment(
        loader=PackageLoader("robustmd.report"),
        autoescape=autoescape,
        finalize=lambda value: value if isinstance(value, Markup) else text(value),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    named = {function.__name__: function for function in functions}
    made.filters.update(named)
    made.globals.update({**named, **values})
    return made
