"""Finding files and lines: globs, `rg`, and Python where there is no `rg`."""
