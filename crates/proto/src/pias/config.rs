//! PIAS's parameters: those of TCP, and the thresholds.

use rampmeter_types::FabricFacts;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::keys::{BadKey, Keys, Preset, Setting, check_ranges};
use crate::tcp::config::{Tcp, TcpConfig};

/// Classes of packets.
pub const CLASSES: u8 = 8;

/// Bytes sent at which packets fall from one class into the next.
pub type Thresholds = [u32; CLASSES as usize - 1];

/// The unit of thresholds in bytes: the payload of the published tables' packets. Thresholds belong
/// to sizes of messages, so that they do not grow with packets.
const UNIT: u64 = 1_460;

/// The parameters of PIAS.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct PiasConfig {
    /// Packets of 1460 bytes. A packet falls a class for each of these numbers that the bytes of
    /// its message before it exceed. Equal numbers leave classes empty.
    #[schemars(inner(range(min = 0, max = 100_000_000)))]
    pub thresholds: Thresholds,
    /// The connections' parameters.
    // The registry refuses keys that neither has; serde cannot for flattened structures.
    #[serde(flatten)]
    pub tcp: TcpConfig,
}

/// Bai et al. (NSDI 2015), for Web Search (DCTCP's) and Data Mining (VL2's) at two loads.
const WEB_SEARCH_05: Thresholds = [1_059, 1_412, 1_643, 1_869, 2_008, 2_115, 2_184];
const WEB_SEARCH_08: Thresholds = [909, 1_329, 1_648, 1_960, 2_143, 2_337, 2_484];
const DATA_MINING_05: Thresholds = [805, 1_106, 1_401, 10_693, 11_970, 21_162, 22_272];
const DATA_MINING_08: Thresholds = [745, 1_083, 1_391, 13_689, 14_936, 21_149, 27_245];

impl Default for PiasConfig {
    fn default() -> Self {
        Self::with_thresholds(WEB_SEARCH_05)
    }
}

impl Keys for PiasConfig {
    const PRESETS: &'static [Preset<Self>] = &[
        ("web-search-0.5", || Self::with_thresholds(WEB_SEARCH_05)),
        ("web-search-0.8", || Self::with_thresholds(WEB_SEARCH_08)),
        ("data-mining-0.5", || Self::with_thresholds(DATA_MINING_05)),
        ("data-mining-0.8", || Self::with_thresholds(DATA_MINING_08)),
        ("reference", PiasConfig::reference),
    ];
    const SETTINGS: &'static [Setting] =
        &[Setting { preset: "reference", gbps: 10, payload: None, window: None }];
}

impl PiasConfig {
    /// DCTCP (RFC 8257) with these thresholds.
    pub fn with_thresholds(thresholds: Thresholds) -> Self {
        Self { thresholds, tcp: TcpConfig::dctcp() }
    }

    /// The parameters of the ns-2 scripts of the study over an over-subscribed core. They are
    /// persistent connections, ports of two bandwidth-delay products, and a fixed timeout of 200
    /// ms.
    pub fn reference() -> Self {
        Self { thresholds: WEB_SEARCH_08, tcp: TcpConfig::dctcp_ns2() }
    }

    /// Checks the parameters and derives what follows from them.
    ///
    /// # Errors
    /// A parameter out of range; thresholds that do not ascend are.
    pub fn derive(self, facts: &FabricFacts) -> Result<Tcp, BadKey> {
        check_ranges(&self)?;
        let bytes = self.thresholds.iter().map(|&packets| u64::from(packets) * UNIT);
        self.tcp.derive(facts, bytes.collect())
    }
}
