"""The commands, a module each, which `cli` imports; `common` has their shared parts."""
