"""`python -m towline`."""

from towline.cli.main import main

main()
