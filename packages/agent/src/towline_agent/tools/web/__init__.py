"""The web: pages as text, plain requests, pictures of pages."""
