"""Captures of encrypted packets: read by logged keys of nodes, as if they were not encrypted."""

import selectors
import shutil
import socket
import threading
import time
from pathlib import Path

import pytest

from .nodes import RAMPD, TIMEOUT, Network, free_ports, number_of, text
from .test_dissector import frame, infos, rows, tshark, write_capture

pytestmark = [
    pytest.mark.skipif(RAMPD is None, reason="rampd is not built: make build"),
    pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed"),
]


class Relay:
    """Forwards datagrams to a node, and records them."""

    def __init__(self, address: str, frames: list[bytes]) -> None:
        host, port = address.split(":")
        self._frames = frames
        self._is_over = threading.Event()
        (own,) = free_ports(1)
        self.address = f"{host}:{own}"
        self._selector = selectors.DefaultSelector()
        for n in (0, 1):
            one = socket.socket(type=socket.SOCK_DGRAM)
            one.bind((host, own + n))
            self._selector.register(one, selectors.EVENT_READ, (host, int(port) + n))
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._is_over.is_set():
            for key, _ in self._selector.select(0.1):
                assert isinstance(key.fileobj, socket.socket)
                datagram = key.fileobj.recv(65_536)
                self._frames.append(datagram)
                key.fileobj.sendto(datagram, key.data)

    def stop(self) -> None:
        """Ends the relay."""
        self._is_over.set()
        self._thread.join()
        for key in list(self._selector.get_map().values()):
            assert isinstance(key.fileobj, socket.socket)
            key.fileobj.close()


class Pair(Network):
    """Two nodes with a relay before each, as the other one sees it."""

    def __init__(self, folder: Path, transport: str, security: str) -> None:
        super().__init__(folder, transport)
        self.security = security
        self.frames: list[bytes] = []
        self._real = list(self.addresses)
        self._relays = [Relay(address, self.frames) for address in self._real]

    def _configure(self, node: int) -> Path:
        relayed = [relay.address for relay in self._relays]
        self.addresses = [self._real[n] if n == node else relayed[n] for n in range(2)]
        file = super()._configure(node)
        written = file.read_text()
        if self.security == "none":
            lines = [line for line in written.splitlines() if "-key = " not in line]
            written = "\n".join(lines).replace("[network]", '[network]\nsecurity = "none"')
        else:
            written = written.replace("[network]", 'key-log = "keys.log"\n[network]')
        # One datagram a packet: a relay has no segmentation offload.
        file.write_text(written.replace("[network]", "[network]\nsegment-offload = false"))
        return file

    def end(self) -> None:
        """Ends nodes and relays."""
        self.stop()
        for relay in self._relays:
            relay.stop()


SIZES = (8, 800, 40_000, 200_000)


@pytest.fixture(params=["dcpim", "tcp"], scope="module")
def captures(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    """Returns captures of two nodes that send each other the same messages, by security."""
    made = {}
    for security in ("none", "encrypted"):
        folder = tmp_path_factory.mktemp(security)
        pair = Pair(folder, request.param, security)
        try:
            pair.start(0)
            pair.start(1)
            with pair.port(0) as a, pair.port(1) as b:
                for number, size in enumerate(SIZES):
                    ticket = a.send(1, text(number, size))
                    assert number_of(b.receive(TIMEOUT)) == number
                    ticket.result(TIMEOUT)
            time.sleep(0.2)
        finally:
            pair.end()
        made[security] = write_capture(folder / "a.pcap", map(frame, pair.frames))
    return made


def key_log(capture: Path) -> list[str]:
    return ["-o", f"rampmeter.keylog_file:{capture.parent / 'keys.log'}"]


def messages(capture: Path, *arguments: str) -> dict[int, bytes]:
    """Returns the messages in a capture, reassembled from their packets."""
    names = ["rampmeter.msg", "rampmeter.offset", "rampmeter.size", "rampmeter.payload"]
    whole: dict[int, bytearray] = {}
    for row in rows(capture, names, "-Y", "rampmeter.payload", *arguments):
        msg, offset, size = (int(row[name][0]) for name in names[:3])
        payload = bytes.fromhex(row["rampmeter.payload"][0].replace(":", ""))
        whole.setdefault(msg, bytearray(size))[offset : offset + len(payload)] = payload
    return {msg: bytes(data) for msg, data in whole.items()}


FIELDS_OF_LOSSES = {f"rampmeter_tcp.sack{part}" for part in ("", ".start", ".end")}
"""Elements of lists that are empty unless a packet was lost or reordered between the nodes."""


def fields(capture: Path, *arguments: str) -> set[str]:
    """Returns the names of the fields that every exchange has, without those of trailers."""
    names = set()
    for line in tshark(capture, "-T", "pdml", *arguments).splitlines():
        name = line.partition('name="')[2].partition('"')[0]
        if name.startswith(("rampmeter", "dcpim")) and ".sealed." not in name:
            names.add(name)
    return names - {"rampmeter.checksum", "rampmeter.session"} - FIELDS_OF_LOSSES


class TestNodes:
    def test_messages_are_read_by_the_key_log(self, captures: dict[str, Path]) -> None:
        sent = {number: text(number, size) for number, size in enumerate(SIZES)}
        sealed = captures["encrypted"]
        assert messages(captures["none"]) == sent
        assert messages(sealed, *key_log(sealed)) == sent
        assert messages(sealed) == {}

    def test_every_packet_is_opened_and_well_formed(self, captures: dict[str, Path]) -> None:
        sealed = captures["encrypted"]
        names = ["rampmeter.protection", "rampmeter.sealed.opened", "_ws.expert.message"]
        found = rows(sealed, names, *key_log(sealed))
        assert len(found) > 50
        for row in found:
            assert row["_ws.expert.message"] == []
            is_sealed = int(row["rampmeter.protection"][0], 0) == 2
            assert (row["rampmeter.sealed.opened"] != []) == is_sealed

    def test_fields_are_those_of_packets_that_are_not_encrypted(
        self, captures: dict[str, Path]
    ) -> None:
        sealed = captures["encrypted"]
        assert fields(sealed, *key_log(sealed)) == fields(captures["none"])
        shown = [info for info in infos(sealed, *key_log(sealed)) if "session" not in info]
        assert not any("sealed" in info for info in shown)

    def test_the_key_log_is_for_its_owner_alone(self, captures: dict[str, Path]) -> None:
        folder = captures["encrypted"].parent
        assert (folder / "keys.log").stat().st_mode & 0o777 == 0o600
        for node in (0, 1):
            assert "can read all packets of this node" in (folder / f"{node}.log").read_text()

    def test_other_keys_are_reported(self, captures: dict[str, Path], tmp_path: Path) -> None:
        sealed = captures["encrypted"]
        lines = (sealed.parent / "keys.log").read_text().splitlines()
        wrong = tmp_path / "wrong.log"
        wrong.write_text("".join(f"{line.rpartition(' ')[0]} {'5a' * 32}\n" for line in lines))
        option = ("-o", f"rampmeter.keylog_file:{wrong}")
        n_sealed = len(rows(sealed, ["frame.number"], "-Y", "rampmeter.protection == 2"))
        marked = rows(sealed, ["frame.number"], "-Y", "rampmeter.bad_tag", *option)
        assert len(marked) == n_sealed > 0
        assert messages(sealed, *option) == {}
