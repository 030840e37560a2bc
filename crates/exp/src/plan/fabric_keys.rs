//! Keys of the `fabric` table: documentation, check, default and use of each.
//!
//! An entry of `fabric_keys!` is all that a key of one value needs. The kinds of entries are
//!
//! | kind | value |
//! |---|---|
//! | `value(field)` | of the plan, else the default of a [`FabricConfig`] |
//! | `choice(need => field)` | of the plan, else the need of the transport, else the default |
//! | `length(need => field, max)` | the same, a length of packets from 0 to `max` bytes |
//! | `bytes(need => field, max)` | the same, from 0 to `max` bytes or none |
//! | `group` | checked together with other keys, in `fabric.rs` or `pfc.rs` |
//!
//! `field` is a field of [`FabricConfig`], `need` one of [`FabricNeeds`].

use rampmeter_core::Bytes;
use rampmeter_core::fabric::{FabricNeeds, HeaderOverflow, MarkingPorts, Need, TrimChoice};
use rampmeter_sim::{FabricConfig, Interface, Overflow, PacketFate, Scheduling, Spray};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::by_port::PortBytesSpec;
use super::context::PlanOrigin;
use super::tables::{PfcSpec, SwitchingSpec};
use crate::error::PlanError;
use crate::text::words::PlanSpelling;

/// Assigns the value of one key to the fabric.
macro_rules! assign {
    (group, $($of:ident)+) => {};
    (value($field:ident), $spec:ident $needs:ident $fabric:ident $cx:ident $key:ident) => {
        $fabric.$field = $spec.$key.unwrap_or($fabric.$field);
    };
    (
        choice($need:ident => $field:ident),
        $spec:ident $needs:ident $fabric:ident $cx:ident $key:ident
    ) => {
        let key = stringify!($key);
        $fabric.$field = choose(key, $spec.$key, $needs.$need, $fabric.$field, $cx)?;
    };
    (
        length($need:ident => $field:ident, $max:literal),
        $spec:ident $needs:ident $fabric:ident $cx:ident $key:ident
    ) => {
        let key = stringify!($key);
        let requested = within(key, $spec.$key, $max, $cx)?.map(|bytes| bytes as u16);
        $fabric.$field = choose(key, requested, $needs.$need, $fabric.$field, $cx)?;
    };
    (
        bytes($need:ident => $field:ident, $max:literal),
        $spec:ident $needs:ident $fabric:ident $cx:ident $key:ident
    ) => {
        let key = stringify!($key);
        let requested = within(key, $spec.$key, $max, $cx)?.map(|bytes| Some(Bytes::new(bytes)));
        $fabric.$field = choose(key, requested, $needs.$need, $fabric.$field, $cx)?;
    };
}

/// Writes the value of the fabric into one key.
macro_rules! write_back {
    (group, $($of:ident)+) => {};
    (bytes($need:ident => $field:ident, $max:literal), $spec:ident $fabric:ident $key:ident) => {
        $spec.$key = $fabric.$field.map(Bytes::get);
    };
    (
        length($need:ident => $field:ident, $max:literal),
        $spec:ident $fabric:ident $key:ident
    ) => {
        $spec.$key = Some($fabric.$field.into());
    };
    (choice($need:ident => $field:ident), $spec:ident $fabric:ident $key:ident) => {
        $spec.$key = Some($fabric.$field);
    };
    (value($field:ident), $spec:ident $fabric:ident $key:ident) => {
        $spec.$key = Some($fabric.$field);
    };
}

macro_rules! fabric_keys {
    (
        $(#[$table:meta])* $name:ident {
            $($(#[$about:meta])* $key:ident: $of:ty = $kind:ident $(($($use:tt)+))?,)+
        }
    ) => {
        $(#[$table])*
        #[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema, Serialize)]
        #[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
        pub struct $name {
            $($(#[$about])* pub $key: Option<$of>,)+
        }

        impl $name {
            /// Assigns the values of all keys but those of groups to `fabric`, which has defaults.
            pub(super) fn assign(
                &self,
                needs: &FabricNeeds,
                fabric: &mut FabricConfig,
                cx: &PlanOrigin<'_>,
            ) -> Result<(), PlanError> {
                $(assign!($kind $(($($use)+))?, self needs fabric cx $key);)+
                Ok(())
            }

            /// Writes the values of `fabric` into all keys but those of groups.
            pub(super) fn complete(&mut self, fabric: &FabricConfig) {
                $(write_back!($kind $(($($use)+))?, self fabric $key);)+
            }
        }
    };
}

fabric_keys! {
    /// The `fabric` table. What is left out is as the transport needs it, or else as in the dcPIM
    /// paper (table 1); the manifest has every value.
    FabricSpec {
        /// Packet memory of each switch port, where ports have their own: a number, or a table by
        /// the rate or the tier of ports.
        buffer_bytes: PortBytesSpec = group,
        /// Packet memory of each switch, where its ports share it.
        shared_buffer_bytes: u64 = group,
        /// A port may hold this many times what is free of a shared memory.
        alpha: f64 = group,
        /// Behaviour of a port if packet memory is full.
        overflow: Overflow = choice(overflow => overflow),
        /// Order of the packets of one class at a port: by arrival, or fair queueing by flow.
        scheduling: Scheduling = value(scheduling),
        /// Path choice.
        spray: Spray = choice(spray => spray),
        /// Bytes waiting at a port from which on it marks ECN-capable packets: a number, or a table
        /// by the rate or the tier of ports; no marks if left out.
        ecn_bytes: PortBytesSpec = group,
        /// Bytes waiting at a port from which on it marks all ECN-capable packets. Below, the share
        /// of marked packets grows with the queue. All are marked from `ecn-bytes` on if left out.
        ecn_max_bytes: PortBytesSpec = group,
        /// Share of packets that are marked just below `ecn-max-bytes`, from 0 to 1.
        ecn_max_probability: f64 = group,
        /// Ports that mark.
        ecn_ports: MarkingPorts = choice(ecn_ports => marking_ports),
        /// Queued bytes at a switch's port above which it drops unscheduled packets; never if left
        /// out.
        drop_unscheduled_above_bytes: u64 =
            bytes(drop_unscheduled => drop_unscheduled_above, 4_000_000_000),
        /// Time at which forwarding begins.
        switching: SwitchingSpec = group,
        /// Fate of packets without a schedule that are cut off, if packets may not wait in
        /// switches.
        unscheduled: PacketFate = value(unscheduled),
        /// Place of the packet queue in hosts.
        interface: Interface = choice(interface => interface),
        /// Bytes that must be in before cut-through forwarding begins.
        cut_through_bytes: u64 = group,
        /// Idle time that a link makes up for later, if switching is shaped.
        shaper_burst_us: f64 = group,
        /// Packets of the highest priority up to this length pass other packets at once and take no
        /// buffer, which saves an event for most control packets; 0 makes them wait as others do.
        express_bytes: u64 = length(express_max => express_max, 9_000),
        /// Memory that a waiting packet takes at least.
        slot_bytes: u64 = length(buffer_cell => buffer_cell, 9_100),
        /// Length of a packet whose payload is cut off, where ports trim (NDP).
        trim_bytes: u64 = group,
        /// Choice of the data packet that is trimmed.
        trim_choice: TrimChoice = group,
        /// Headers that a port sends for one data packet while both wait; 0 sends headers first.
        header_ratio: u64 = group,
        /// Memory of a port's header queue.
        header_queue_bytes: u64 = group,
        /// Fate of a trimmed packet that does not fit into the header queue.
        header_overflow: HeaderOverflow = group,
        /// Priority flow control; none if left out and the transport needs none.
        pfc: PfcSpec = group,
    }
}

/// Returns the value of the plan, else that which the transport needs, else the default.
pub(super) fn choose<T: PlanSpelling + PartialEq>(
    key: &str,
    plan: Option<T>,
    need: Need<T>,
    default: T,
    cx: &PlanOrigin<'_>,
) -> Result<T, PlanError> {
    match (plan, need) {
        (Some(requested), Need::Require(needed)) if requested != needed => {
            let expected =
                format!("{}, the only value that the transport works with", needed.words());
            Err(cx.unexpected(&path(key), expected, requested.words()))
        }
        (Some(requested), _) => Ok(requested),
        (None, Need::Prefer(needed) | Need::Require(needed)) => Ok(needed),
        (None, Need::Any) => Ok(default),
    }
}

/// Checks that a number of bytes is at most `max`.
fn within(
    key: &str,
    bytes: Option<u64>,
    max: u64,
    cx: &PlanOrigin<'_>,
) -> Result<Option<u64>, PlanError> {
    if let Some(bytes) = bytes {
        cx.range(&path(key), bytes as f64, 0.0, max as f64)?;
    }
    Ok(bytes)
}

/// Returns the path of a key in the plan.
fn path(key: &str) -> String {
    format!("fabric.{}", key.replace('_', "-"))
}
