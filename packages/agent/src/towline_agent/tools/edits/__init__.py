"""Changes of texts: exact replacements, patches, and what to say when they do not fit."""
