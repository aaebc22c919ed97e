"""What is known of code: its symbols, what checkers find in it, how it is set up."""
