"""`python -m rampmeter` is the command `rampmeter`."""

from rampmeter.cli import main

main()
