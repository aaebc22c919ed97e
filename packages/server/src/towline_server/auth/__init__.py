"""Who is asking: tokens and one-time codes. Knows no store and no HTTP."""
