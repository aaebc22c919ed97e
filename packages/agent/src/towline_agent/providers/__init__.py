"""Someone to ask: the seam, the catalog and the dialects."""
