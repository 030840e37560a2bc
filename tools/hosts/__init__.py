"""Rigs of real nodes and programs, such as `python -m tools.hosts.soak`, run in a checkout."""
