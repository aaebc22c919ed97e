"""The command line."""

import argparse
import sys

from tally.words import count_words


def main(argv=None):
    parser = argparse.ArgumentParser(prog="tally", description="Count the words of a text.")
    parser.add_argument("--upper", action="store_true", help="print words in capitals")
    args = parser.parse_args(argv)
    for word, count in count_words(sys.stdin.read()):
        print(f"{count:5} {word.upper() if args.upper else word}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
