//! Configuration of a node for the runtime.

use std::io;
use std::net::SocketAddr;

use rampmeter_runtime::NodeConfig;
use rampmeter_runtime::datapath::udp::UdpConfig;
use rampmeter_runtime::wire::Incarnation;
use rampmeter_types::Span;

use crate::config::Setup;

/// Returns the configuration of a node for the runtime, with a new incarnation.
pub(crate) fn node_config(setup: &Setup) -> io::Result<NodeConfig> {
    Ok(NodeConfig {
        node: setup.id,
        transport: setup.transport.wire,
        incarnation: Incarnation::new(entropy()? as u32),
        rate: setup.facts.access_rate,
        burst: setup.facts.access_rate.bytes_floor(TIMER_LATE),
        spray: setup.transport.spray,
        run: if setup.udp.segment_offload { UdpConfig::RUN } else { 1 },
        coalescing: setup.coalescing,
        busy_poll: setup.busy_poll,
        message_max: setup.message_max,
        connect_timeout: setup.connect_timeout,
        peers: setup.udp.peers.iter().map(|p| p.map(|a: SocketAddr| Some(a.ip()))).collect(),
        agreement: setup.agreement(),
        seed: entropy()?,
    })
}

/// Maximum lateness of timers of a loaded system without a loss of throughput.
pub(super) const TIMER_LATE: Span = Span::from_us(250);

/// Returns an unpredictable number.
pub(super) fn entropy() -> io::Result<u64> {
    let mut bytes = [0; 8];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(u64::from_ne_bytes(bytes))
}
