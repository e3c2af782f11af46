"""The data sets, one file each: their settings, and how they are loaded.

Every module here is imported, so that a new file is a new data set.
"""

from importlib import import_module
from pkgutil import iter_modules

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
