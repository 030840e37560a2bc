"""Captures of encrypted packets, decrypted with the logged keys of nodes."""

import selectors
import shutil
import socket
import subprocess
import threading
import time
from pathlib import Path

import pytest

from .dissection import frame, infos, rows, tshark, write_capture
from .nodes import RAMPD, TIMEOUT, Network, free_ports, needs_rampd, number_of, text

pytestmark = [
    needs_rampd,
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
        file.write_text(written.replace("[network]", "[network]\nsegmentation-offload = false"))
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


def decrypt(capture: Path, keys: Path, out: Path) -> str:
    """Decrypts a capture; returns the line that the command prints."""
    arguments = list(map(str, [RAMPD, "decrypt", "--keys", keys, capture, out]))
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    return str(done.stdout)


@pytest.fixture(scope="module")
def decrypted(captures: dict[str, Path]) -> Path:
    """Returns the decrypted capture."""
    sealed = captures["encrypted"]
    out = sealed.parent / "decrypted.pcap"
    n_sealed = len(rows(sealed, ["frame.number"], "-Y", "rampmeter.protection == 2"))
    line = decrypt(sealed, sealed.parent / "keys.log", out)
    assert line.startswith(f"{out}: {n_sealed} packets decrypted, 0 without a key, 0 with a wrong")
    return out


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
    def test_messages_of_a_decrypted_capture_are_those_that_were_sent(
        self, captures: dict[str, Path], decrypted: Path
    ) -> None:
        sent = {number: text(number, size) for number, size in enumerate(SIZES)}
        assert messages(captures["none"]) == sent
        assert messages(decrypted) == sent
        assert messages(captures["encrypted"]) == {}

    def test_every_packet_is_decrypted_and_well_formed(self, decrypted: Path) -> None:
        options = ("-o", "udp.check_checksum:TRUE")
        names = ["rampmeter.protection", "_ws.expert.message", "udp.checksum.status"]
        found = rows(decrypted, names, *options)
        assert len(found) > 50
        for row in found:
            assert row["_ws.expert.message"] == []
            assert int(row["rampmeter.protection"][0], 0) in (0, 3)

    def test_fields_are_those_of_packets_that_are_not_encrypted(
        self, captures: dict[str, Path], decrypted: Path
    ) -> None:
        assert fields(decrypted) == fields(captures["none"])
        shown = [info for info in infos(decrypted) if "session" not in info]
        assert not any("sealed" in info for info in shown)

    def test_keys_and_decrypted_captures_are_for_their_owner_alone(
        self, captures: dict[str, Path], decrypted: Path
    ) -> None:
        folder = captures["encrypted"].parent
        for file in (folder / "keys.log", decrypted):
            assert file.stat().st_mode & 0o777 == 0o600
        for node in (0, 1):
            assert "key-log-open" in (folder / f"{node}.log").read_text()

    def test_packets_of_other_keys_are_counted_and_unchanged(
        self, captures: dict[str, Path], tmp_path: Path
    ) -> None:
        sealed = captures["encrypted"]
        lines = (sealed.parent / "keys.log").read_text().splitlines()
        (tmp_path / "wrong.log").write_text(
            "".join(f"{line.rpartition(' ')[0]} {'5a' * 32}\n" for line in lines)
        )
        (tmp_path / "none.log").write_text("")
        n_sealed = len(rows(sealed, ["frame.number"], "-Y", "rampmeter.protection == 2"))
        out = tmp_path / "out.pcap"
        assert f"0 without a key, {n_sealed} with" in decrypt(sealed, tmp_path / "wrong.log", out)
        assert f"{n_sealed} without a key, 0 with" in decrypt(sealed, tmp_path / "none.log", out)
        assert out.read_bytes() == sealed.read_bytes()

    def test_a_malformed_line_is_an_error_that_names_it(
        self, captures: dict[str, Path], tmp_path: Path
    ) -> None:
        keys, out = tmp_path / "keys.log", tmp_path / "out.pcap"
        keys.write_text("a comment\nRAMPMETER_KEY 0 1 2 short\n")
        arguments = list(map(str, [RAMPD, "decrypt", "--keys", keys, captures["encrypted"], out]))
        done = subprocess.run(arguments, capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert f"{keys}: line 2: expected RAMPMETER_KEY" in done.stderr
        assert not out.exists()
