"""The seam to whoever knows models, and keeps their providers' keys."""
