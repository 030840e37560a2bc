//! Checks and settings that configurations share.

use std::ops::RangeInclusive;

use rampmeter_types::fabric::Buffer;
use rampmeter_types::{Bytes, FabricFacts, Span};

use crate::keys::BadKey;

/// Checks a parameter whose range depends on others.
///
/// # Errors
/// It is out of range.
pub fn check_range(
    key: &str,
    got: u64,
    range: RangeInclusive<u64>,
    expected: &str,
) -> Result<(), BadKey> {
    if range.contains(&got) { Ok(()) } else { Err(BadKey::new(key, expected, got)) }
}

/// Returns the time without a packet of its receiver after which a sender probes for its flow. It
/// is 64 control round trips, or 64 packets of `packet` bytes at the host's share of the core.
/// Answers wait while those of all hosts cross a slow core.
pub fn keepalive(facts: &FabricFacts, packet: Bytes) -> Span {
    let of_packet = facts.core_rate.map_or(Span::ZERO, |core| core.tx_time(packet));
    facts.control_rtt.max(of_packet) * 64
}

/// Returns a timeout of `round_trips` control round trips, or of as many packets of `packet` bytes.
/// The latter holds if the host's link or its share of the core takes longer for one. Several
/// messages share these, and slow ones are busy for many round trips of control packets.
pub fn timeout_of(facts: &FabricFacts, round_trips: u32, packet: Bytes) -> Span {
    facts.control_rtt.max(facts.min_rate().tx_time(packet)) * u64::from(round_trips)
}

/// Pause between repetitions for a message that the receiver holds back. It is long enough that
/// those of all messages that a program may have waiting take a small part of a link.
pub fn paused_probe_interval(keepalive: Span) -> Span {
    keepalive * 64
}

/// Time after which a receiver drops a flow whose sender is unresponsive. It is twice the time
/// after which a sender that repeats itself every `interval` aborts.
pub fn forget_after(interval: Span, attempts_max: u32) -> Span {
    interval * (u64::from(attempts_max) + 2) * 2
}

/// Two bandwidth-delay products, in packets that take `packet` bytes: the buffer of a port in
/// pFabric (§5.1).
pub fn two_bdps(packet: Bytes, facts: &FabricFacts) -> Bytes {
    packet * (2 * u64::from(facts.bdp_packets(packet)))
}

/// Ports of the pHost study (§4.1): 36 KB where 10 Gbit/s and 7.6 us make a bandwidth-delay product
/// of 9500 bytes. Others have as many of their own, and at least two in whole packets.
pub fn phost_study_buffer(packet: Bytes, facts: &FabricFacts) -> Buffer {
    let product = u128::from(facts.access_rate.as_bps()) * u128::from(facts.data_rtt.as_ps());
    let bytes = product * 36_864 / (9_500 * 8 * 1_000_000_000_000);
    Buffer::PerPort(Bytes::new(bytes as u64).max(two_bdps(packet, facts)))
}

/// Ports of dcPIM's study (§4.1): 500 000 bytes, where hosts of 100 Gbit/s have control round trips
/// of 5.216 us. Networks with a larger product have as many of their own. Those of full packets do
/// not count, as a slow core lengthens them.
pub fn dcpim_study_buffer(facts: &FabricFacts) -> Buffer {
    let product = u128::from(facts.access_rate.as_bps()) * u128::from(facts.control_rtt.as_ps());
    let bytes = product * 500_000 / (65_200 * 8 * 1_000_000_000_000);
    Buffer::PerPort(Bytes::new((bytes as u64).max(500_000)))
}

/// Packets that a port holds in the CAPTON study: two bandwidth-delay products of 71 packets.
pub const CAPTON_PORT_PACKETS: u64 = 142;

#[cfg(test)]
mod tests {
    use rampmeter_types::Rate;

    use super::*;

    fn facts(mbps: u64, data_rtt_ns: u64) -> FabricFacts {
        FabricFacts {
            n_hosts: 144,
            access_rate: Rate::from_bps(mbps * 1_000_000).unwrap(),
            core_rate: None,
            data_rtt: Span::from_ns(data_rtt_ns),
            control_rtt: Span::from_ns(data_rtt_ns / 2),
            abort_timeout_min: Span::ZERO,
        }
    }

    /// A round trip of pFabric's study holds 12 packets. That of pHost's is half as long; its ports
    /// hold 36 KB as well.
    #[test]
    fn buffers_are_those_of_the_studies_and_grow_with_the_bandwidth_delay_product() {
        let packet = Bytes::new(1_500);
        assert_eq!(two_bdps(packet, &facts(10_000, 14_400)), Bytes::new(36_000));
        assert_eq!(two_bdps(packet, &facts(100_000, 14_400)), Bytes::new(360_000));
        let study = |mbps, rtt_ns| phost_study_buffer(packet, &facts(mbps, rtt_ns));
        assert_eq!(study(10_000, 7_600), Buffer::PerPort(Bytes::new(36_864)));
        assert_eq!(study(100_000, 5_800), Buffer::PerPort(Bytes::new(281_330)));
        assert_eq!(study(400_000, 1_450), study(100_000, 5_800));
        // A round trip shorter than a packet.
        assert_eq!(study(100, 40_000), Buffer::PerPort(packet * 2));
    }

    #[test]
    fn ports_of_dcpim_grow_with_delays_and_not_with_packet_times() {
        let ports = |mbps, control_rtt_ns, data_rtt_ns| {
            let control_rtt = Span::from_ns(control_rtt_ns);
            dcpim_study_buffer(&FabricFacts { control_rtt, ..facts(mbps, data_rtt_ns) })
        };
        let paper = Buffer::PerPort(Bytes::new(500_000));
        assert_eq!(ports(100_000, 5_216, 5_800), paper);
        assert_eq!(ports(100_000, 5_000, 12_000), paper);
        assert_eq!(ports(10_000, 5_216, 11_000), paper);
        assert_eq!(ports(400_000, 5_216, 5_500), Buffer::PerPort(Bytes::new(2_000_000)));
        assert_eq!(ports(100_000, 52_160, 60_000), Buffer::PerPort(Bytes::new(5_000_000)));
    }
}
