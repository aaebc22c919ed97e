"""Prints the report of a ledger: report.py < FILE"""

import sys

from ledger.read import read_rows
from ledger.report import render


def main():
    print(render(read_rows(sys.stdin.read())))


if __name__ == "__main__":
    main()
