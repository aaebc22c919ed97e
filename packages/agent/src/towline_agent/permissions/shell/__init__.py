"""Shell commands, taken apart by the grammar (A5.64)."""
