//! pFabric's parameters and what they imply for one fabric.

use rampmeter_core::{Bytes, FabricFacts, Span};
use serde::{Deserialize, Serialize};

use crate::parts::{ConfigError, Framing, Padding, check_packets, within};

/// What a flow does that has timed out several times in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Starving {
    /// It sends probes without payload until one is answered (§4.3).
    Probe,
    /// It sends one packet a timeout, as before. The authors' simulator does this.
    Persist,
}

/// pFabric's parameters. [`PfabricConfig::paper`] and [`PfabricConfig::reference`] are the presets.
#[derive(Clone, Debug, PartialEq)]
pub struct PfabricConfig {
    /// First window in packets.
    pub window: u32,
    /// Largest window in packets, at most 64.
    pub window_max: u32,
    /// Retransmission timeout in nanoseconds.
    pub rto_ns: u64,
    /// Timeouts in a row after which a flow starves.
    pub starving_after: u32,
    /// What it does then.
    pub starving: Starving,
    /// Charged length of last packets.
    pub padding: Padding,
    /// Payload of a full packet.
    pub payload: Bytes,
    /// Bytes of headers charged to each packet, and the length of a control packet.
    pub header: Bytes,
    /// Timeouts in a row after which a flow is reported as failed.
    pub attempts_max: u32,
}

impl PfabricConfig {
    /// The paper's design (§4.3) with the parameters of the pHost study at 10 Gbit/s: windows of 12
    /// to 15 packets, 45 us.
    pub fn paper() -> Self {
        Self {
            window: 12,
            window_max: 15,
            rto_ns: 45_000,
            starving_after: 5,
            starving: Starving::Probe,
            padding: Padding::Exact,
            payload: Bytes::new(1460),
            header: Bytes::new(40),
            attempts_max: 400,
        }
    }

    /// What the pHost study's simulator does.
    pub fn reference() -> Self {
        Self {
            starving: Starving::Persist,
            padding: Padding::Full,
            attempts_max: 10_000,
            ..Self::paper()
        }
    }
}

/// The parameters of pFabric on one fabric, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Pfabric {
    /// The parameters.
    pub config: PfabricConfig,
    /// Retransmission timeout.
    pub rto: Span,
    /// When a destination forgets a flow whose source is silent.
    pub forget: Span,
}

impl PfabricConfig {
    /// Checks the parameters.
    ///
    /// # Errors
    /// A parameter out of range.
    pub fn on(self, facts: &FabricFacts) -> Result<Pfabric, ConfigError> {
        within("window", self.window.into(), 1..=64, "1 to 64")?;
        within("window-max", self.window_max.into(), self.window.into()..=64, "window to 64")?;
        within("rto-ns", self.rto_ns, 100..=1_000_000_000, "100 to 1000000000")?;
        within("starving-after", self.starving_after.into(), 1..=1_000_000, "1 to 1000000")?;
        check_packets(self.payload, self.header)?;
        within("attempts-max", self.attempts_max.into(), 1..=1_000_000, "1 to 1000000")?;
        let rto = Span::from_ns(self.rto_ns);
        let forget = rto * (u64::from(self.attempts_max) + 2) + facts.data_rtt;
        Ok(Pfabric { rto, forget, config: self })
    }
}

impl Pfabric {
    pub(super) fn framing(&self) -> Framing {
        let PfabricConfig { payload, header, padding, .. } = self.config;
        Framing { payload, header, padding }
    }
}
