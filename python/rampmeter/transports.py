"""Placeholder."""

from rampmeter.spec import Transport


class DcPim(Transport): ...


class PHost(Transport): ...


class PFabric(Transport): ...


class Fastpass(Transport): ...


class Cosy(Transport): ...


class Ideal(Transport): ...


__all__ = ["DcPim"]
