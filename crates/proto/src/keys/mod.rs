//! The keys of a transport: its parameters as plans write them, described once.
//!
//! A transport's configuration is a struct whose fields carry name, documentation and range as
//! attributes of serde and schemars. [`key_infos`] reads them back, and plans, checks, tables of
//! the documentation and classes of the Python package follow from that.

mod info;
mod packet_sizes;
mod renamed;
mod table;

use serde_json::Value;

pub use info::{BadKey, Choice, KeyInfo, KeyKind, Keys, Preset, Setting, key_infos};
pub use packet_sizes::PacketSizes;
pub use renamed::{
    RENAMED_KEYS, RENAMED_NODE_KEYS, RENAMED_PLAN_KEYS, RenamedKey, RenamedTableKey, table_and_key,
};
pub use table::{TransportTable, values};

/// Checks that every parameter is in its range.
///
/// # Errors
/// The first that is not.
pub fn check_ranges<K: Keys>(keys: &K) -> Result<(), BadKey> {
    let Ok(Value::Object(values)) = serde_json::to_value(keys) else { return Ok(()) };
    for info in key_infos::<K>() {
        match values.get(&info.name) {
            None | Some(Value::Null) => {}
            Some(value) if info.kind.admits(value) => {}
            Some(value) => return Err(BadKey::new(&info.name, info.kind.to_string(), value)),
        }
    }
    Ok(())
}

/// Defines serde adapters of a number and of an optional number that plans write in a unit.
/// Configurations store integer fractions of the unit, so that arithmetic is exact. Other numbers
/// are rounded.
macro_rules! parts_of_unit {
    ($name:ident, $optional:ident, $integer:ty, $parts:literal) => {
        pub(crate) mod $name {
            use serde::{Deserialize, Deserializer, Serializer};

            pub(crate) fn serialize<S>(value: &$integer, to: S) -> Result<S::Ok, S::Error>
            where
                S: Serializer,
            {
                to.serialize_f64(f64::from(*value) / $parts)
            }

            pub(crate) fn deserialize<'de, D>(from: D) -> Result<$integer, D::Error>
            where
                D: Deserializer<'de>,
            {
                Ok((f64::deserialize(from)? * $parts).round() as $integer)
            }
        }

        pub(crate) mod $optional {
            use serde::{Deserialize, Deserializer, Serialize, Serializer};

            pub(crate) fn serialize<S>(value: &Option<$integer>, to: S) -> Result<S::Ok, S::Error>
            where
                S: Serializer,
            {
                value.map(|value| f64::from(value) / $parts).serialize(to)
            }

            pub(crate) fn deserialize<'de, D>(from: D) -> Result<Option<$integer>, D::Error>
            where
                D: Deserializer<'de>,
            {
                let units = Option::<f64>::deserialize(from)?;
                Ok(units.map(|units| (units * $parts).round() as $integer))
            }
        }
    };
}

parts_of_unit!(milli, optional_milli, u32, 1e3);
parts_of_unit!(quarters, optional_quarters, u8, 4.0);

/// A time that plans write in microseconds, if they do.
pub(crate) mod micros {
    use rampmeter_types::Span;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(span: &Option<Span>, to: S) -> Result<S::Ok, S::Error> {
        span.map(Span::as_us_f64).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Span>, D::Error> {
        let us = Option::<f64>::deserialize(from)?;
        Ok(us.map(|us| Span::from_ps((us * 1e6).round().max(0.0) as u64)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pfabric::PfabricConfig;
    use crate::tcp::{DctcpConfig, TcpConfig};

    #[test]
    fn a_range_is_printed_as_in_plans() {
        let window = KeyKind::Integer { min: 1, max: 64 };
        assert_eq!(window.to_string(), "1 to 64");
        assert!(window.admits(&64.into()) && !window.admits(&65.into()));
        assert!(!window.admits(&(-1).into()) && !window.admits(&1.5.into()));
    }

    #[test]
    fn a_configuration_that_wraps_another_has_its_keys() {
        assert_eq!(key_infos::<DctcpConfig>(), key_infos::<TcpConfig>());
    }

    #[test]
    fn a_list_has_its_length_and_ascends() {
        let list = KeyKind::List { length: 3, min: 1, max: 9 };
        assert_eq!(list.to_string(), "3 whole numbers from 1 to 9 that ascend");
        for good in [[1, 2, 9], [4, 4, 4]] {
            assert!(list.admits(&Value::from(good.to_vec())), "{good:?}");
        }
        for bad in [vec![1, 2], vec![1, 2, 3, 4], vec![0, 1, 2], vec![1, 2, 10], vec![2, 1, 3]] {
            assert!(!list.admits(&Value::from(bad.clone())), "{bad:?}");
        }
        assert!(!list.admits(&5.into()) && !list.admits(&Value::from(vec![1.5, 2.0, 3.0])));
    }

    #[test]
    fn values_out_of_range_are_refused_with_their_key() {
        let keys = PfabricConfig { starvation_timeouts: 0, ..PfabricConfig::paper() };
        let error = check_ranges(&keys).unwrap_err();
        assert_eq!(error.to_string(), "starvation-timeouts: expected 1 to 1000000, got 0");
    }
}
