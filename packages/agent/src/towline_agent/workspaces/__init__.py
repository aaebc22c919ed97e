"""Where tools touch files and processes."""
