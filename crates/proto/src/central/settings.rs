//! Settings shared by hosts and controllers of one network.

use std::sync::Arc;

use rampmeter_types::fabric::{
    ArbiterNeed, ArbiterPlace, ArbiterRate, Buffer, FabricNeeds, Interface, Need, Overflow,
};
use rampmeter_types::{Bytes, FabricFacts, NodeId, Priority, Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::controller::ControllerConfig;
use crate::keys::BadKey;
use crate::registered::DerivedValue;
use crate::tcp::Tcp;
use crate::toolkit::{CAPTON_PORT_PACKETS, two_bdps};

/// Keys of controllers, of which configurations have one flattened copy. Omitted times follow from
/// the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct ControllerKeys {
    /// Number of controllers: hosts use the second if the first is unresponsive.
    #[schemars(range(min = 1, max = 2))]
    pub controllers: u32,
    /// Time that a controller takes for an order. Default: 10 in 86 of a round trip, which is 10 us
    /// in the paper's network (§V.C).
    #[serde(rename = "compute-us", with = "crate::keys::micros")]
    #[schemars(with = "Option<f64>", range(min = 0.0, max = 1e4))]
    pub compute: Option<Span>,
    /// Time after which a request without an answer is retransmitted, in microseconds; default:
    /// four round trips and the controller's time.
    #[schemars(range(min = 1, max = 10_000_000))]
    pub retransmit_us: Option<u64>,
    /// Time without any answer after which a host sends without the controller, in microseconds;
    /// default: 16 times `retransmit-us`.
    #[schemars(range(min = 1, max = 60_000_000))]
    pub fallback_us: Option<u64>,
    /// Time without a message after which the controller forgets a host, in microseconds; default:
    /// four times `fallback-us`.
    #[schemars(range(min = 100, max = 60_000_000))]
    pub lease_us: Option<u64>,
}

impl Default for ControllerKeys {
    fn default() -> Self {
        Self {
            controllers: 1,
            compute: None,
            retransmit_us: None,
            fallback_us: None,
            lease_us: None,
        }
    }
}

/// Settings shared by hosts and controllers.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The parameters of TCP.
    pub tcp: Arc<Tcp>,
    /// The rate of messages that are not scheduled; `None` if congestion control decides.
    pub unscheduled: Option<Rate>,
    /// The class of data of scheduled messages, if grants have paths.
    pub scheduled_class: Priority,
    /// Messages up to this size are not scheduled.
    pub threshold: Bytes,
    /// The number of the first controller.
    pub first_controller: NodeId,
    /// Number of controllers.
    pub controllers: u32,
    /// Time that a controller takes for an order.
    pub compute: Span,
    /// Time after which a request without an answer is retransmitted.
    pub retransmit_after: Span,
    /// Time without an answer after which a host works without the controller.
    pub fallback: Span,
    /// Interval between repeated requests of a host during a flow.
    pub refresh_interval: Span,
    /// The controller's settings.
    pub controller: ControllerConfig,
}

impl Settings {
    /// Returns the settings for controllers on a network. Messages up to `threshold` are sent
    /// without a request, at the rate `unscheduled`. Computing takes a controller a share of the
    /// round trip `near`, between near hosts.
    ///
    /// # Errors
    /// A fallback that is too short.
    pub fn new(
        tcp: Arc<Tcp>,
        threshold: Bytes,
        unscheduled: Option<Rate>,
        keys: &ControllerKeys,
        facts: &FabricFacts,
        near: Span,
    ) -> Result<Self, BadKey> {
        let derived = || near.scale_floor(10, 86);
        let compute = keys.compute.unwrap_or_else(derived);
        let retransmit_after =
            keys.retransmit_us.map_or(facts.data_rtt * 4 + compute, Span::from_us);
        let least = retransmit_after * 2;
        let fallback = keys.fallback_us.map_or(retransmit_after * 16, Span::from_us);
        let lease = keys.lease_us.map_or(fallback * 4, Span::from_us);
        if fallback < least {
            let expected =
                format!("at least {} (twice retransmit-us)", least.as_ps().div_ceil(1_000_000));
            return Err(BadKey::new("fallback-us", expected, fallback.as_ps() / 1_000_000));
        }
        Ok(Self {
            tcp,
            unscheduled,
            scheduled_class: Priority::HIGHEST,
            threshold,
            first_controller: NodeId::new(facts.n_hosts),
            controllers: keys.controllers,
            compute,
            retransmit_after,
            fallback,
            refresh_interval: lease / 4,
            controller: ControllerConfig {
                grace: Span::ZERO,
                query_timeout: retransmit_after,
                lease,
                flows_max: 1 << 16,
            },
        })
    }

    /// Derives further values from the parameters.
    pub(crate) fn describe(&self) -> Vec<DerivedValue> {
        let window = self.tcp.start.granted / self.tcp.config.packet.payload.get();
        let mut derived = vec![
            DerivedValue::packets("window-granted", window as u32),
            DerivedValue::time("retransmit", self.retransmit_after),
            DerivedValue::time("fallback", self.fallback),
            DerivedValue::time("refresh", self.refresh_interval),
            DerivedValue::count("short-flow-bytes", self.threshold.get()),
        ];
        derived.extend(self.tcp.describe());
        derived
    }
}

/// Returns the needs of a transport with `controllers` controllers and packets of `packet` bytes.
/// Ports have no classes or marks. They hold `queue` packets. Default: these are two
/// bandwidth-delay products, and at least as many packets as in the CAPTON study, as unscheduled
/// messages have up to `threshold` packets.
pub(crate) fn needs(
    packet: Bytes,
    queue: Option<u32>,
    controllers: u32,
    facts: &FabricFacts,
) -> FabricNeeds {
    let own = |packets: u32| packet * u64::from(packets);
    let port = || two_bdps(packet, facts).max(packet * CAPTON_PORT_PACKETS);
    let buffer = queue.map_or_else(port, own);
    let need = ArbiterNeed { rate: ArbiterRate::Slowest, place: ArbiterPlace::FirstRack };
    FabricNeeds {
        buffer: Need::Prefer(Buffer::PerPort(buffer)),
        overflow: Need::Prefer(Overflow::TailDrop),
        interface: Need::Prefer(Interface::Pull),
        express_max: Need::Prefer(0),
        priorities: 1,
        arbiters: vec![need; controllers as usize],
        ..FabricNeeds::default()
    }
}
