"""What is sent: assembling a request."""
