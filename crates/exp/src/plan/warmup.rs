//! The key `measure.warmup-flows`: a number, or the rule that finds it.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Number of first flows that the statistics leave out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WarmUp {
    /// The number by MSER-5 if arrivals are Poisson processes of one period, and neither links nor
    /// nodes fail or change; else none.
    #[default]
    Auto,
    /// The number by MSER-5.
    Mser5,
    /// This many.
    Flows(u64),
}

const EXPECTED: &str = "a number of flows, `auto` or `mser-5`";

impl JsonSchema for WarmUp {
    fn schema_name() -> Cow<'static, str> {
        "WarmUp".into()
    }

    fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A number of flows, or the rule that finds it.",
            "anyOf": [{ "enum": ["auto", "mser-5"] }, { "type": "integer", "minimum": 0 }],
        })
    }
}

impl Serialize for WarmUp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Auto => serializer.serialize_str("auto"),
            Self::Mser5 => serializer.serialize_str("mser-5"),
            Self::Flows(n) => serializer.serialize_u64(*n),
        }
    }
}

impl<'de> Deserialize<'de> for WarmUp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct WarmUpVisitor;
        impl Visitor<'_> for WarmUpVisitor {
            type Value = WarmUp;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(EXPECTED)
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<WarmUp, E> {
                match text {
                    "auto" => Ok(WarmUp::Auto),
                    "mser-5" => Ok(WarmUp::Mser5),
                    _ => Err(E::invalid_value(Unexpected::Str(text), &self)),
                }
            }

            fn visit_u64<E: Error>(self, flows: u64) -> Result<WarmUp, E> {
                Ok(WarmUp::Flows(flows))
            }

            fn visit_i64<E: Error>(self, flows: i64) -> Result<WarmUp, E> {
                let flows = u64::try_from(flows);
                flows.map(WarmUp::Flows).map_err(|_| E::custom(format!("expected {EXPECTED}")))
            }
        }
        deserializer.deserialize_any(WarmUpVisitor)
    }
}
