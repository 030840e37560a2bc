"""The command `python -m tools.generate`."""

from tools.generate.files import main

main()
