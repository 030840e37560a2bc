"""The Wireshark dissector: tshark must read encoded packets, and tolerate anything else."""

import json
import random
import re
import struct
from collections import Counter
from pathlib import Path
from typing import TypeAlias

import pytest

from rampmeter import _core

from .dissection import (
    FILTERS,
    FRAME_HEADERS,
    KNOWN,
    SCRIPT,
    frame,
    infos,
    needs_tshark,
    numbers,
    rows,
    run_tshark,
    tshark,
    write_capture,
)

pytestmark = needs_tshark
TITLES = "|".join(about["title"] for about in KNOWN)

Packet: TypeAlias = dict[str, int | list[int]]


def frame_numbers(capture: Path, display_filter: str) -> list[int]:
    found = rows(capture, ["frame.number"], "-Y", display_filter)
    return [int(row["frame.number"][0]) for row in found]


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Packet]]:
    """Writes a capture of one packet of every type; returns it with the packets' fields."""
    capture = tmp_path_factory.mktemp("samples") / "samples.pcapng"
    return capture, json.loads(_core.every_packet(capture))


@pytest.fixture(scope="module")
def payloads(samples: tuple[Path, list[Packet]]) -> list[bytes]:
    """Returns the samples from the envelope on, with their payload."""
    payloads = []
    data = samples[0].read_bytes()
    while data:
        kind, length = struct.unpack_from("<II", data)
        if kind == 6:
            captured, original = struct.unpack_from("<II", data, 20)
            headers = data[28 + FRAME_HEADERS : 28 + captured]
            payloads.append(headers + bytes(original - captured))
        data = data[length:]
    return payloads


class TestFields:
    def test_every_field_of_every_packet_equals_its_encoded_value(
        self, samples: tuple[Path, list[Packet]]
    ) -> None:
        capture, expected = samples
        names = sorted({name for packet in expected for name in packet})
        found = rows(capture, names)
        assert len(found) == len(expected)
        for row, packet in zip(found, expected, strict=True):
            for name in names:
                value = packet.get(name, [])
                assert numbers(row[name]) == (value if isinstance(value, list) else [value]), (
                    f"{name} of {packet}"
                )

    def test_every_field_that_there_is_has_been_compared(
        self, samples: tuple[Path, list[Packet]]
    ) -> None:
        _, expected = samples
        known = set()
        listed, _ = run_tshark("-G", "fields", "-X", f"lua_script:{SCRIPT}")
        for line in listed.splitlines():
            kind, _, name, of, *_ = (*line.split("\t"), "")
            protocol = name.partition(".")[0]
            if kind == "F" and protocol in ("rampmeter", *FILTERS.values()):
                known.add((name, of))
        compared = {name for packet in expected for name in packet}
        # Branches of the tree and expert infos have no value; payloads are omitted here.
        valued = {name for name, of in known if of not in ("FT_NONE", "FT_BYTES")}
        # Packets of one transport alone have no byte that identifies it: see
        # `TestSeveralTransports`.
        # Simulated packets have no trailer: see `TestProtected`.
        trailers = {name for name in valued if ".sealed." in name} | {"rampmeter.checksum"}
        assert valued - {"rampmeter.part"} - trailers == compared

    def test_json_output_has_every_field(self, samples: tuple[Path, list[Packet]]) -> None:
        capture, expected = samples
        read = json.loads(tshark(capture, "-T", "json"))
        for packet, sample in zip(read, expected, strict=True):
            layers = packet["_source"]["layers"]
            assert int(layers["rampmeter"]["rampmeter.src"]) == sample["rampmeter.src"]
            for name in FILTERS.values():
                assert (name in layers) == (f"{name}.type" in sample)

    def test_well_formed_packets_have_no_expert_info(
        self, samples: tuple[Path, list[Packet]]
    ) -> None:
        assert frame_numbers(samples[0], "_ws.expert") == []

    @pytest.mark.parametrize(
        "name",
        [
            "dcpim.type",
            "rampmeter.kind",
            "rampmeter.nonce",
            "phost.time_to_deadline",
            "pfabric.sack",
            "fastpass.slot.dst",
        ],
    )
    def test_filters_select_their_packets(
        self, samples: tuple[Path, list[Packet]], name: str
    ) -> None:
        capture, expected = samples
        values = [packet.get(name, []) for packet in expected]
        lists = [value if isinstance(value, list) else [value] for value in values]
        maximum = max(value for values in lists for value in values)
        having = [n for n, values in enumerate(lists, 1) if maximum in values]
        assert frame_numbers(capture, f"{name} == {maximum}") == having

    def test_filters_find_transports(self, samples: tuple[Path, list[Packet]]) -> None:
        counts = Counter(name for packet in samples[1] for name in packet if name.endswith(".type"))
        for transport in FILTERS.values():
            assert len(frame_numbers(samples[0], transport)) == counts[f"{transport}.type"]


class TestInfo:
    def test_the_info_column_is_a_sentence(self, samples: tuple[Path, list[Packet]]) -> None:
        capture, expected = samples

        def only(name: str, value: int) -> Packet:
            return next(packet for packet in expected if packet.get(name) == value)

        token = only("dcpim.type", 4)
        assert infos(capture, "-Y", "rampmeter.kind < 9 && dcpim.type == 4") == [
            f"dcPIM token: flow slot {token['dcpim.tx_slot']}, packet {token['dcpim.seq']}, "
            f"{token['dcpim.remaining']} remaining"
        ]
        data = only("dcpim.type", 3)
        assert infos(capture, "-Y", "dcpim.type == 3") == [
            f"dcPIM data: flow slot {data['dcpim.rx_slot']}, packet {data['dcpim.seq']}, "
            f"token {data['dcpim.number']}, bytes 70000 to 70999 of 71000"
        ]
        assert infos(capture, "-Y", "rampmeter.kind < 2") == [
            "dcPIM hello: 3 asks 66000 for its incarnation",
            "dcPIM here: 3 tells 66000 that it is incarnation 305419896",
        ]
        bundle = only("rampmeter.kind", 9)
        lengths = bundle["rampmeter.length"]
        assert isinstance(lengths, list)
        (info,) = infos(capture, "-Y", "rampmeter.kind == 9")
        assert info.startswith(f"dcPIM bundle: {len(lengths)} packets, first notification: flow ")

    def test_lists_and_the_largest_values_have_words(
        self, samples: tuple[Path, list[Packet]], payloads: list[bytes], tmp_path: Path
    ) -> None:
        def header(transport: str, code: int, fields: bytes) -> bytes:
            types = [packet.get(f"{transport}.type") for packet in samples[1]]
            return payloads[types.index(code)][:28] + bytes([code]) + fields

        rts = struct.pack(">IIQ", 7, 8, 9)
        expected = {
            header(
                "fastpass", 3, struct.pack(">IIBHIHI", 1, 2, 2, 260, 65536, 261, 5)
            ): "Fastpass request: slots in all: 65536 to 260, 5 to 261",
            header(
                "fastpass", 3, struct.pack(">IIB", 1, 2, 0)
            ): "Fastpass request: slots in all: none",
            header(
                "fastpass", 4, struct.pack(">IIIQBHBB", 1, 2, 3, 4, 1, 260, 5, 6)
            ): "Fastpass allocation: from slot 4: +5 to 260",
            header(
                "fastpass", 9, struct.pack(">BII", 2, 7, 2**32 - 1)
            ): "Fastpass schedule: flow slots 7, none",
            header(
                "phost", 1, rts + struct.pack(">QHB", 2**64 - 1, 0, 0)
            ): "pHost RTS: flow 7 of 9 bytes, slot 8, no deadline",
            header(
                "phost", 1, rts + struct.pack(">QHB", 2**32 - 1, 0, 0)
            ): "pHost RTS: flow 7 of 9 bytes, slot 8, 4294967295 ps left",
        }
        capture = write_capture(tmp_path / "a.pcap", map(frame, expected))
        assert infos(capture) == list(expected.values())

    def test_every_packet_has_an_info_text_without_gaps(
        self, samples: tuple[Path, list[Packet]]
    ) -> None:
        for info in infos(samples[0]):
            assert re.fullmatch(rf"({TITLES}) [^\[{{]+: [^\[{{]+", info), info
            assert "nil" not in info


class TestMalformed:
    def test_truncated_packets_are_marked_wherever_they_end(
        self, payloads: list[bytes], samples: tuple[Path, list[Packet]], tmp_path: Path
    ) -> None:
        shortened = [
            payload[:length]
            for payload, packet in zip(payloads, samples[1], strict=True)
            for length in range(1, len(payload) - int(str(packet.get("rampmeter.payload_len", 0))))
            # The part of a hello after the envelope may be absent.
            if (packet["rampmeter.kind"], length) != (0, 28)
        ]
        capture = write_capture(tmp_path / "a.pcap", map(frame, shortened))
        marked = frame_numbers(capture, "rampmeter.truncated")
        assert marked == list(range(1, len(shortened) + 1))
        assert all("needs" in info for info in infos(capture))

    def test_truncated_captures_are_not_malformed_packets(
        self, payloads: list[bytes], tmp_path: Path
    ) -> None:
        cut = [frame(payloads[0], cut=length) for length in range(4, 28)]
        capture = write_capture(tmp_path / "a.pcap", cut)
        assert len(frame_numbers(capture, "rampmeter.not_captured")) == len(cut)
        assert frame_numbers(capture, "rampmeter.truncated") == []

    def test_random_bytes_are_marked(self, tmp_path: Path) -> None:
        rng = random.Random(1)
        noise = [rng.randbytes(rng.randint(1, 120)) for _ in range(500)]
        capture = write_capture(tmp_path / "a.pcap", map(frame, noise))
        assert len(frame_numbers(capture, "_ws.expert")) == len(noise)

    def test_random_changes_do_no_harm(self, payloads: list[bytes], tmp_path: Path) -> None:
        rng = random.Random(2)
        changed = []
        for _ in range(2000):
            payload = bytearray(rng.choice(payloads)[:120])
            for _ in range(rng.randint(1, 4)):
                payload[rng.randrange(len(payload))] = rng.randrange(256)
            changed.append(bytes(payload))
        capture = write_capture(tmp_path / "a.pcap", map(frame, changed))
        assert len(infos(capture)) == len(changed)
        tshark(capture, "-V")

    @pytest.mark.parametrize(
        ("offset", "value", "expert", "message"),
        [
            (0, 0, "bad_field", "Magic must be 0x524d, got 0x4d"),
            (2, 3, "bad_field", "Version must be 0x2, got 0x3"),
            (3, 12, "unknown_kind", "there are no packets of kind 12"),
            (4, 60, "unknown_transport", "there is no transport 60"),
            (5, 4, "bad_field", "Protection must be 0 to 3, got 4"),
            (7, 1, "bad_field", "Service must be 0 but in data, got 1"),
            (28, 99, "unknown_type", "dcPIM has no packets of type 99"),
            (29, 0, "bad_field", "Channels must be at least 1, got 0"),
            (30, 9, "bad_field", "Channels that may start early must be at most channels, got 9"),
        ],
    )
    def test_the_first_wrong_field_is_named(
        self,
        samples: tuple[Path, list[Packet]],
        payloads: list[bytes],
        tmp_path: Path,
        offset: int,
        value: int,
        expert: str,
        message: str,
    ) -> None:
        request = [packet.get("dcpim.type") for packet in samples[1]].index(7)
        payload = bytearray(payloads[request])
        payload[29:31] = 4, 2
        payload[offset] = value
        capture = write_capture(tmp_path / "a.pcap", [frame(bytes(payload))])
        assert frame_numbers(capture, f"rampmeter.{expert}") == [1]
        assert f"[{message}]" in infos(capture)[0]

    def test_lists_that_are_too_long_and_bytes_too_many_are_marked(
        self, samples: tuple[Path, list[Packet]], payloads: list[bytes], tmp_path: Path
    ) -> None:
        schedule = payloads[[packet.get("fastpass.type") for packet in samples[1]].index(9)]
        too_long = bytearray(schedule + bytes(100))
        too_long[29] = 17
        wrong = [bytes(too_long), schedule + b"x"]
        capture = write_capture(tmp_path / "a.pcap", map(frame, wrong))
        assert frame_numbers(capture, "rampmeter.bad_field") == [1]
        assert frame_numbers(capture, "rampmeter.trailing") == [2]

    def test_data_beyond_the_message_are_marked(
        self, samples: tuple[Path, list[Packet]], payloads: list[bytes], tmp_path: Path
    ) -> None:
        data = payloads[[packet.get("dcpim.type") for packet in samples[1]].index(3)]
        capture = write_capture(tmp_path / "a.pcap", map(frame, [data, data + b"x"]))
        assert frame_numbers(capture, "rampmeter.bad_length") == [2]


class TestSeveralTransports:
    def test_a_byte_identifies_the_transport_of_a_header(
        self, payloads: list[bytes], tmp_path: Path
    ) -> None:
        """106 is cosy above pHost."""
        envelopes = {2: 28, 3: 36, 10: 40}
        alone = [p for p in payloads if p[4] in (2, 5) and p[3] in envelopes]
        together = []
        for payload in alone:
            envelope = envelopes[payload[3]]
            changed = bytearray(payload)
            changed[4] = 106
            changed.insert(envelope, payload[4] == 2)
            together.append(bytes(changed))
        before = write_capture(tmp_path / "a.pcap", map(frame, alone))
        after = write_capture(tmp_path / "b.pcap", map(frame, together))
        assert frame_numbers(after, "_ws.expert") == []
        assert infos(after) == infos(before)
        for name in ("cosy", "phost"):
            assert frame_numbers(after, name) == frame_numbers(before, name) != []

    def test_other_values_of_it_are_marked(self, tmp_path: Path) -> None:
        ids = struct.pack(">IIIII", 0, 1, 1, 1, 0)
        packets = [b"RM\x02\x02\x6a\x00\x00\x00" + ids + bytes([part]) for part in (1, 2)]
        capture = write_capture(tmp_path / "a.pcap", map(frame, packets))
        assert frame_numbers(capture, "rampmeter.bad_field") == [2]


class TestProtected:
    """Packets of real hosts have a trailer."""

    def test_a_checksum_is_no_part_of_the_payload(
        self, payloads: list[bytes], tmp_path: Path
    ) -> None:
        trailed = [p[:5] + b"\x01" + p[6:] + b"\xde\xad\xbe\xef" for p in payloads]
        bare = write_capture(tmp_path / "a.pcap", map(frame, payloads))
        capture = write_capture(tmp_path / "b.pcap", map(frame, trailed))
        assert frame_numbers(capture, "rampmeter.checksum == 0xdeadbeef") == frame_numbers(
            bare, "rampmeter"
        )
        assert infos(capture) == infos(bare)
        assert frame_numbers(capture, "_ws.malformed || _ws.expert") == frame_numbers(
            bare, "_ws.malformed || _ws.expert"
        )

    def test_envelope_and_trailer_of_sealed_packets_are_shown(self, tmp_path: Path) -> None:
        ids = struct.pack(">IIIIIII", 3, 4, 1, 1, 17, 70_000, 71_000)
        data = b"RM\x02\x03\x01\x02\x00\x07" + ids + b"?" * 100
        trailer = struct.pack(">HHI", 0xA1B2, 0, 99) + b"tag" * 5 + b"."
        capture = write_capture(tmp_path / "a.pcap", [frame(data + trailer)])
        shown = "rampmeter.sealed.session == 0xa1b2 && rampmeter.sealed.number == 99"
        assert frame_numbers(capture, f"{shown} && rampmeter.msg == 17") == [1]
        assert infos(capture) == ["dcPIM data, sealed, 100 bytes"]
        assert frame_numbers(capture, "_ws.malformed || _ws.expert") == []


class TestPorts:
    def test_packets_are_recognised_on_any_port_by_their_first_bytes(
        self, payloads: list[bytes], tmp_path: Path
    ) -> None:
        frames = [frame(payload, port=9999) for payload in payloads]
        capture = write_capture(tmp_path / "a.pcap", frames)
        assert len(frame_numbers(capture, "rampmeter")) == len(payloads)

    def test_foreign_packets_on_other_ports_are_not_dissected(self, tmp_path: Path) -> None:
        others = [b"RM\x01\x00" + bytes(40), b"RM\x02\x0c" + bytes(40), b"RM\x02", b"QM\x02\x00"]
        capture = write_capture(tmp_path / "a.pcap", [frame(other, port=9999) for other in others])
        assert frame_numbers(capture, "rampmeter") == []
