"""The pages of a shelf of books."""


def page_name(title):
    """The name of a book's page."""
    return title.lower().replace(" ", "-") + ".html"
