"""Tools that come with the library."""
