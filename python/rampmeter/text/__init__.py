"""Texts: numbers, tables, TOML and JSON, and warnings with their codes."""
