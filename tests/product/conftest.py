"""Makes the one running product of this folder."""

from collections.abc import Generator

import pytest
from product.running import NOTES, POEM, Product, start_product


@pytest.fixture(scope="session")
def product(tmp_path_factory: pytest.TempPathFactory) -> Generator[Product]:
    """One running product for all tests of this folder: the model is loaded once."""
    root = tmp_path_factory.mktemp("root")
    (root / "notes.txt").write_text(NOTES)
    (root / "poem.txt").write_text(POEM)
    with start_product(tmp_path_factory.mktemp("home"), root) as running:
        yield running
