"""Plans whose flows have many causes of their times."""

from rampmeter.plan import schema

PLAN = """\
seed = 3
[topology]
kind = "leaf-spine"
racks = 2
hosts-per-rack = 4
spines = 2
[transport]
name = "{name}"
preset = "{preset}"
[workload]
{workload}
[run]
blame = true
"""
BUSY = 'pattern = "all-to-all"\nsizes = "imc10"\nload = 0.7\nflows = {flows}\n'
PRESETS = [
    (str(about["name"]), preset)
    for about in schema.transports()
    if about["name"] not in ("ideal", "python")
    for preset, _ in about["presets"]
]
"""Transports with packets, and their presets."""
