//! The `transport` table of plans and of hosts' configurations.

use rampmeter_types::{FabricFacts, Span};
use toml::{Table, Value};

use super::info::{BadKey, KeyInfo, Keys, key_infos};
use super::renamed::{RENAMED_KEYS, RenamedKey, former_name};

/// A `transport` table: the keys that every transport has, and its own keys.
#[derive(Clone, Debug, PartialEq)]
pub struct TransportTable {
    /// Name of the transport.
    pub name: String,
    /// Preset that gives the keys without a value; the first preset if `None`.
    pub preset: Option<String>,
    /// Unloaded round trip of a control packet, in microseconds, instead of the network's.
    pub control_rtt_us: Option<f64>,
    /// Unloaded round trip of a full packet, in microseconds, instead of the network's.
    pub data_rtt_us: Option<f64>,
    /// Transport in the lower classes, for all tenants but the first.
    pub best_effort: Option<Table>,
    /// Offset of the classes of its packets, if several transports share the network.
    pub class: Option<u8>,
    /// Keys of this transport alone.
    pub keys: Table,
}

impl TransportTable {
    /// Parses a table. The transport's own keys are parsed by [`TransportTable::keys`].
    ///
    /// # Errors
    /// A missing name, or a common key whose value cannot be used.
    pub fn new(table: &Table) -> Result<Self, BadKey> {
        let mut keys = table.clone();
        let mut text = |key: &str| match keys.remove(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(BadKey::new(key, "a text", other)),
        };
        let name = text("name")?;
        let name = name.ok_or_else(|| BadKey::new("name", "the name of a transport", "none"))?;
        let preset = text("preset")?;
        let mut rtt = |key: &str| match keys.remove(key) {
            None => Ok(None),
            Some(value) => match number(&value) {
                Some(us) if (1e-3..=1e8).contains(&us) => Ok(Some(us)),
                _ => Err(BadKey::new(key, "a number from 0.001 to 100000000", value)),
            },
        };
        let (control_rtt_us, data_rtt_us) = (rtt("control-rtt-us")?, rtt("data-rtt-us")?);
        let class = match keys.remove("class") {
            None => None,
            Some(value) => match value.as_integer() {
                Some(class @ 0..=7) => Some(class as u8),
                _ => return Err(BadKey::new("class", "a whole number from 0 to 7", value)),
            },
        };
        let best_effort = match keys.remove("best-effort") {
            None => None,
            Some(Value::Table(lower)) => match lower.get("best-effort") {
                None => Some(lower),
                Some(third) => {
                    let key = "best-effort.best-effort";
                    return Err(BadKey::new(key, "no more than two transports", third));
                }
            },
            Some(other) => return Err(BadKey::new("best-effort", "a transport table", other)),
        };
        Ok(Self { name, preset, control_rtt_us, data_rtt_us, best_effort, class, keys })
    }

    /// Returns `facts` with the round trips of the table, if it has any.
    pub fn with_round_trips(&self, facts: &FabricFacts) -> FabricFacts {
        let span = |us: f64| Span::from_ps((us * 1e6).round() as u64);
        let control_rtt = self.control_rtt_us.map_or(facts.control_rtt, span);
        // Without `data-rtt-us`, a full packet is slower than a small one by as much as in the
        // network.
        let serialization = facts.data_rtt.saturating_sub(facts.control_rtt);
        let data_rtt = match (self.data_rtt_us, self.control_rtt_us) {
            (Some(us), _) => span(us),
            (None, Some(_)) => control_rtt + serialization,
            (None, None) => facts.data_rtt,
        };
        FabricFacts { control_rtt, data_rtt, ..*facts }
    }

    /// Returns the parameters: those of the preset, overridden by the keys of the table.
    ///
    /// # Errors
    /// An unknown preset or key, or a value outside of its range.
    pub fn keys<K: Keys>(&self) -> Result<K, BadKey> {
        let preset = preset::<K>(self.preset.as_deref())?;
        check(&self.name, &self.keys, &key_infos::<K>())?;
        let mut all = values(&preset());
        all.extend(self.keys.clone());
        all.try_into().map_err(|e: toml::de::Error| {
            BadKey::new(&self.name, "keys that fit together", e.message())
        })
    }

    /// Returns the name of the preset.
    pub fn preset_name<K: Keys>(&self) -> &str {
        self.preset.as_deref().unwrap_or(K::PRESETS[0].0)
    }
}

/// Returns the values of all keys.
///
/// # Panics
/// The type of the keys is no table, or has an integer above `i64::MAX`.
pub fn values<K: Keys>(keys: &K) -> Table {
    Table::try_from(keys).expect("keys are a table")
}

fn preset<K: Keys>(name: Option<&str>) -> Result<fn() -> K, BadKey> {
    let Some(name) = name else { return Ok(K::PRESETS[0].1) };
    let found = K::PRESETS.iter().find(|(known, _)| *known == name);
    found.map(|(_, preset)| *preset).ok_or_else(|| {
        let names: Vec<&str> = K::PRESETS.iter().map(|(name, _)| *name).collect();
        BadKey::new("preset", names.join(" or "), format!("{name:?}"))
    })
}

fn check(transport: &str, given: &Table, infos: &[KeyInfo]) -> Result<(), BadKey> {
    for (key, value) in given {
        let Some(info) = infos.iter().find(|info| info.name == *key) else {
            let is_former = |renamed: &&RenamedKey| {
                renamed.old == key
                    && renamed.is_of(transport)
                    && infos.iter().any(|info| info.name == renamed.new)
            };
            if let Some(RenamedKey { new, parts, .. }) = RENAMED_KEYS.iter().find(is_former) {
                let divided = match parts {
                    1 => String::new(),
                    parts => format!(", and its value divided by {parts}"),
                };
                let (expected, got) = former_name(key, new, &divided);
                return Err(BadKey::new(key, expected, got));
            }
            let names = infos.iter().map(|info| info.name.as_str());
            let names: Vec<&str> = std::iter::once("preset").chain(names).collect();
            return Err(BadKey::unlisted(key, &names, key, key));
        };
        let json = serde_json::to_value(value).unwrap_or_default();
        if !info.kind.admits(&json) {
            return Err(BadKey::new(key, info.kind.to_string(), value));
        }
    }
    Ok(())
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Integer(n) => Some(*n as f64),
        Value::Float(x) => Some(*x),
        _ => None,
    }
}
