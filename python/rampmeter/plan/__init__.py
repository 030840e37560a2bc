"""Plans: TOML, tables and their schema, manifests."""
