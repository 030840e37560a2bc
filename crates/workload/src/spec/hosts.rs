//! Hosts of a pattern, as plans write them.

use std::fmt;

use schemars::JsonSchema;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::pattern::Checker;
use super::pattern::WorkloadError;
use crate::pattern::HostSet;

/// Hosts in a plan: `{ first = 0, count = 16, step = 4 }`, or a list of numbers and names.
#[derive(Clone, Debug, PartialEq, JsonSchema)]
#[schemars(untagged)]
pub enum HostsSpec {
    /// Hosts at equal distances.
    Range(RangeSpec),
    /// Numbers or names of hosts, in the order in which they take part.
    List(Vec<HostSpec>),
}

/// Hosts at equal distances, such as `{ first = 0, count = 16 }`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct RangeSpec {
    /// The first.
    pub first: u32,
    /// Number of hosts.
    pub count: u32,
    /// Distance from one to the next; default: 1.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    #[schemars(range(min = 1))]
    pub step: u32,
}

fn one() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_one(step: &u32) -> bool {
    *step == 1
}

/// A host in a plan: its number or its name.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(untagged, expecting = "expected the number or the name of a host")]
pub enum HostSpec {
    /// Number of the host.
    Number(u32),
    /// Name of the host, such as `h3`.
    Name(String),
}

impl<'de> Deserialize<'de> for HostsSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(HostsVisitor)
    }
}

impl Serialize for HostsSpec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Range(range) => range.serialize(serializer),
            Self::List(hosts) => hosts.serialize(serializer),
        }
    }
}

/// Written by hand, because an untagged enum reports every mistake as "did not match".
struct HostsVisitor;

impl<'de> Visitor<'de> for HostsVisitor {
    type Value = HostsSpec;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{ first = 0, count = 16 }, with a step if wanted, or a list of hosts")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<HostsSpec, A::Error> {
        RangeSpec::deserialize(MapAccessDeserializer::new(map)).map(HostsSpec::Range)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<HostsSpec, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(list)).map(HostsSpec::List)
    }
}

impl Checker<'_> {
    /// Returns the hosts of a key, at least `min`; all if it is omitted.
    pub(super) fn hosts(
        &self,
        key: &str,
        spec: Option<&HostsSpec>,
        min: u32,
    ) -> Result<HostSet, WorkloadError> {
        let set = match spec {
            None => HostSet::all(self.n()),
            Some(HostsSpec::Range(range)) => self.range(key, *range, min)?,
            Some(HostsSpec::List(hosts)) => self.list(key, hosts)?,
        };
        if set.count() < min {
            let expected = format!("at least {min} of the hosts 0 to {}", self.n() - 1);
            return self.wrong(key, &expected, set.count());
        }
        Ok(set)
    }

    fn range(&self, key: &str, range: RangeSpec, min: u32) -> Result<HostSet, WorkloadError> {
        let RangeSpec { first, count, step } = range;
        if step == 0 {
            return self.wrong(key, "a step of at least 1", 0);
        }
        let last = u64::from(first) + u64::from(count.saturating_sub(1)) * u64::from(step);
        if count < min || last >= u64::from(self.n()) {
            let expected = format!("at least {min} of the hosts 0 to {}", self.n() - 1);
            let got = match step {
                1 => format!("{count} from {first}"),
                _ => format!("{count} from {first} to {last}"),
            };
            return self.wrong(key, &expected, got);
        }
        Ok(HostSet::Stride { first, count, step })
    }

    fn list(&self, key: &str, hosts: &[HostSpec]) -> Result<HostSet, WorkloadError> {
        let mut seen = vec![false; self.n() as usize];
        let mut numbers = Vec::with_capacity(hosts.len());
        for (idx, host) in hosts.iter().enumerate() {
            let key = format!("{key}[{idx}]");
            let number = self.host(&key, host)?;
            if std::mem::replace(&mut seen[number as usize], true) {
                return self.wrong(&key, "each host once", number);
            }
            numbers.push(number);
        }
        Ok(HostSet::list(&numbers))
    }

    /// Returns the number of a host.
    pub(super) fn host(&self, key: &str, host: &HostSpec) -> Result<u32, WorkloadError> {
        let number = match host {
            HostSpec::Number(number) => *number,
            HostSpec::Name(name) => self.named(key, name)?,
        };
        if number >= self.n() {
            return match host {
                HostSpec::Number(number) => {
                    self.wrong(key, &format!("a host below {}", self.n()), number)
                }
                HostSpec::Name(name) => {
                    let expected = format!("a host of h0 to h{}", self.n() - 1);
                    self.wrong(key, &expected, format!("{name:?}"))
                }
            };
        }
        Ok(number)
    }

    /// Returns the host of a name; of networks without names `h3` is host 3.
    fn named(&self, key: &str, name: &str) -> Result<u32, WorkloadError> {
        let own = self.names().filter(|names| names.has_names());
        let Some(names) = own else {
            let number = name.strip_prefix('h').and_then(|number| number.parse().ok());
            return match number {
                Some(number) => Ok(number),
                None => self.wrong(key, "the number or the name of a host, such as h3", name),
            };
        };
        match names.host(name) {
            Ok(host) => Ok(host),
            Err((expected, got)) => self.wrong(key, &expected, got),
        }
    }
}
