"""Replays: flows that another simulator recorded, run here and compared flow by flow."""
