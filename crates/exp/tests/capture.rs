//! Captures of whole runs: their contents, and that they do not change the results.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use rampmeter_exp::{NullObserver, Plan, Registry, run};
use rampmeter_proto::pfabric::PfabricTransport;
use rampmeter_proto::{Builtin, RegisteredTransport};
use rampmeter_testkit::{Body, Case, Suite, here};
use rampmeter_types::envelope::{DatagramKind, Envelope};
use rampmeter_types::{Header, NodeId, Queueing, SwitchProgram};
use serde_json::Value;

fn plan(transport: &str, fabric: &str, run: &str) -> String {
    format!(
        "[topology]\nkind = \"leaf-spine\"\nracks = 2\nhosts-per-rack = 3\nspines = 2\n\
         [fabric]\n{fabric}\n[transport]\nname = \"{transport}\"\n[workload]\n\
         pattern = \"all-to-all\"\nsizes = \"imc10\"\nload = 0.6\nflows = 100\n[run]\n{run}\n"
    )
}

/// Files of a run.
struct Results {
    capture: Option<Vec<u8>>,
    summary: String,
    manifest: Value,
}

fn results(text: &str) -> Results {
    let plan = Plan::from_toml(text, "plan", &Registry::builtin())
        .unwrap()
        .check("plan", Path::new("."))
        .unwrap();
    let out = tempfile::tempdir().unwrap();
    run(&plan, out.path(), &mut NullObserver).unwrap();
    let text = |name: &str| fs::read_to_string(out.path().join(name)).unwrap();
    assert!(!out.path().join("run.pcapng.partial").exists());
    Results {
        capture: fs::read(out.path().join("run.pcapng")).ok(),
        summary: text("summary.json"),
        manifest: serde_json::from_str(&text("manifest.json")).unwrap(),
    }
}

/// A captured packet: when, at which interface, whether it arrived there, and the datagram.
struct CapturedPacket {
    at_ps: u64,
    interface: u32,
    is_in: bool,
    datagram: Vec<u8>,
}

const CAPTURE: &str = "capture = \"run.pcapng\"";
/// Bytes of Ethernet, IPv4 and UDP.
const BELOW: usize = 42;

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(*bytes[at..].first_chunk().unwrap())
}

fn packets(mut file: &[u8]) -> Vec<CapturedPacket> {
    let mut packets = Vec::new();
    while !file.is_empty() {
        let (kind, length) = (word(file, 0), word(file, 4) as usize);
        if kind == 6 {
            let captured = word(file, 20) as usize;
            let flags = 28 + captured.next_multiple_of(4) + 4;
            packets.push(CapturedPacket {
                at_ps: u64::from(word(file, 12)) << 32 | u64::from(word(file, 16)),
                interface: word(file, 8),
                is_in: word(file, flags) & 3 == 1,
                datagram: file[28 + BELOW..28 + captured].to_vec(),
            });
        }
        file = &file[length..];
    }
    packets
}

fn captured(text: &str) -> Vec<CapturedPacket> {
    packets(&results(text).capture.expect("the plan asks for a capture"))
}

/// Decodes every packet to its last byte, and checks that each arrives unchanged and later than it
/// was sent. Switches with a program may change headers and send packets of their own, and those
/// that trim cut payloads off. For these only the order of time is checked.
fn check<T: RegisteredTransport>(seen: &[CapturedPacket]) {
    let has_program = <T::SwitchProgram as SwitchProgram<T::Header>>::HANDLES_FORWARD
        || <T::SwitchProgram as SwitchProgram<T::Header>>::HANDLES_DEPART
        || <T::SwitchProgram as SwitchProgram<T::Header>>::QUEUEING == Queueing::Trimming;
    let mut in_flight: BTreeMap<&[u8], Vec<u64>> = BTreeMap::new();
    let mut last = 0;
    for packet in seen {
        let (envelope, read) = Envelope::decode(&packet.datagram).unwrap();
        let (_, rest) = T::Header::decode(&packet.datagram[read..]).unwrap();
        assert_eq!(read + rest, packet.datagram.len(), "headers only");
        if let DatagramKind::Data { fragment, .. } = envelope.kind {
            assert!(fragment.offset < fragment.size, "{fragment:?}");
        }
        let end = if packet.is_in { envelope.dst } else { envelope.src };
        assert_eq!(end, NodeId::new(packet.interface));
        assert!(packet.at_ps >= last, "packets are in order of time");
        last = packet.at_ps;
        let left = in_flight.entry(&packet.datagram).or_default();
        if packet.is_in {
            assert!(has_program || left.remove(0) < packet.at_ps);
        } else {
            left.push(packet.at_ps);
        }
    }
    assert!(seen.len() > 500);
}

/// Every packet is captured when it is sent and when it is received. A capture changes nothing
/// else, and is the same again.
#[derive(Clone, Copy)]
struct Capture;

impl Body for Capture {
    const NAME: &'static str = "capture";

    fn test<T: RegisteredTransport>(self, case: &Case<T>) {
        let preset = format!("{}\"\npreset = \"{}", T::NAME, case.preset);
        let with = results(&plan(&preset, "", CAPTURE));
        let without = results(&plan(&preset, "", ""));
        assert_eq!(without.summary, with.summary);
        assert!(without.capture.is_none() && without.manifest.get("capture").is_none());
        assert!(with.capture == results(&plan(&preset, "", CAPTURE)).capture);
        let packets = packets(with.capture.as_ref().expect("the plan asks for a capture"));
        let expected = serde_json::json!({
            "file": "run.pcapng", "packets": packets.len(), "limit_reached": false
        });
        assert_eq!(with.manifest["capture"], expected);
        check::<T>(&packets);
    }
}

fn queueing_interfaces_are_captured_too() {
    let text = plan("pfabric", "interface = \"queue\"", CAPTURE);
    check::<PfabricTransport>(&captured(&text));
}

fn capturing_stops_at_its_limit_and_the_run_continues() {
    let whole = results(&plan("dcpim", "", CAPTURE));
    let limited = results(&plan("dcpim", "", &format!("{CAPTURE}\ncapture-packets = 100")));
    assert_eq!(limited.summary, whole.summary);
    assert_eq!(limited.manifest["capture"]["packets"], 100);
    assert_eq!(limited.manifest["capture"]["limit_reached"], true);
    let bytes = limited.capture.unwrap();
    assert_eq!(packets(&bytes).len(), 100);
    assert_eq!(whole.capture.unwrap()[..bytes.len()], bytes);
}

fn capture_hosts_limits_the_captured_hosts() {
    let text = plan("dcpim", "", &format!("{CAPTURE}\ncapture-hosts = [5, 2]"));
    let chosen = captured(&text);
    let all = captured(&plan("dcpim", "", CAPTURE));
    // Interfaces are numbered in order: 2 is the first, 5 the second.
    for (interface, host) in [(0, 2), (1, 5)] {
        let of = |seen: &[CapturedPacket], interface| {
            let packets = seen.iter().filter(|p| p.interface == interface);
            packets.map(|p| (p.at_ps, p.is_in, p.datagram.clone())).collect::<Vec<_>>()
        };
        assert!(!of(&chosen, interface).is_empty());
        assert!(of(&chosen, interface) == of(&all, host));
    }
    assert!(chosen.iter().all(|p| p.interface < 2));
}

fn main() {
    Suite::new(here!())
        .each_preset::<Builtin, _>(Capture)
        .with_test("queueing_interfaces_are_captured_too", queueing_interfaces_are_captured_too)
        .with_test(
            "capturing_stops_at_its_limit_and_the_run_continues",
            capturing_stops_at_its_limit_and_the_run_continues,
        )
        .with_test(
            "capture_hosts_limits_the_captured_hosts",
            capture_hosts_limits_the_captured_hosts,
        )
        .run();
}
