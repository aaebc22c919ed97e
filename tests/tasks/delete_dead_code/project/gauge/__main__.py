"""The command line."""

import sys

from gauge import plugins
from gauge.numbers import mean, parse


def main():
    values = parse(open(sys.argv[1]).read())
    result = mean(values)
    for name in sorted(dir(plugins)):
        if name.startswith("on_"):
            result = getattr(plugins, name)(result)
    print(result)


if __name__ == "__main__":
    main()
