"""Sells ten books."""

from shop.core import Stock, sell

stock = Stock()
stock.put("book", 12)
print(sell(stock, "book", 10, 1000), stock.counts["book"])
