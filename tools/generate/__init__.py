"""Generators of files from the plans and transports that the core defines.

`python -m tools.generate` renews the files that `files` lists.
"""
