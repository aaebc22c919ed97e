"""The phone web app: made elsewhere, served here."""
