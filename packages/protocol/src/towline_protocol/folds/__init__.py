"""The reducer's parts, one for each kind of event."""
