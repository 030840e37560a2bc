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

use rampmeter_sim::{FabricConfig, Interface, Overflow, PacketFate, Scheduling, Spray};
use rampmeter_types::Bytes;
use rampmeter_types::fabric::{FabricNeeds, HeaderOverflow, MarkingPorts, Need, TrimChoice};
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
        /// Packet memory of each switch port: a number, or a table by the rate or the tier of
        /// ports. 0 for ports without memory.
        buffer_bytes: PortBytesSpec = group,
        /// Packet memory of a switch that its ports share, instead of `buffer-bytes`.
        shared_buffer_bytes: u64 = group,
        /// Maximum memory of a port, as a factor of the free shared memory.
        alpha: f64 = group,
        /// Behaviour of a port if packet memory is full.
        overflow: Overflow = choice(overflow => overflow),
        /// Order of packets of one class at a port.
        scheduling: Scheduling = value(scheduling),
        /// Path choice.
        spray: Spray = choice(spray => spray),
        /// Queue of a port above which it marks ECN-capable packets: a number, or a table by the
        /// rate or the tier of ports. No marks if left out.
        ecn_bytes: PortBytesSpec = group,
        /// Queue of a port above which it marks all ECN-capable packets; default: `ecn-bytes`. The
        /// share of marked packets grows linearly in between (RED, DCQCN).
        ecn_max_bytes: PortBytesSpec = group,
        /// Share of packets that are marked just below `ecn-max-bytes`, from 0 to 1; by default 1.
        ecn_max_probability: f64 = group,
        /// Ports that mark.
        ecn_ports: MarkingPorts = choice(ecn_ports => marking_ports),
        /// Queue of a switch's port above which it drops unscheduled packets, and no others
        /// (selective dropping, Aeolus).
        drop_unscheduled_above_bytes: u64 =
            bytes(drop_unscheduled => drop_unscheduled_above, 4_000_000_000),
        /// Time at which forwarding begins.
        switching: SwitchingSpec = group,
        /// Treatment of an unscheduled packet that is cut off at a port without memory.
        unscheduled_collision: PacketFate = value(unscheduled_collision),
        /// Place of the packet queue in hosts.
        interface: Interface = choice(interface => interface),
        /// Bytes of a packet that a switch receives before it forwards the packet, if switching is
        /// cut-through.
        cut_through_bytes: u64 = group,
        /// Idle time that a link makes up for later, if switching is shaped.
        shaper_burst_us: f64 = group,
        /// Maximum length of packets of the highest priority that take no buffer, so that no queue
        /// overflows with them. 0 makes them compete for buffers.
        express_bytes: u64 = length(express_max => express_max, 9_000),
        /// Minimum memory of a queued packet. The length of a full packet makes buffers, marks and
        /// queue lengths count packets, as in ns-2 and ns-3.
        buffer_cell_bytes: u64 = length(buffer_cell => buffer_cell, 9_100),
        /// Length of a packet whose payload a full port has removed (NDP).
        trim_bytes: u64 = group,
        /// Packet that a full data queue trims.
        trim_choice: TrimChoice = group,
        /// Packets of the header queue that a port sends for one data packet while both queues hold
        /// packets; 0 sends headers first.
        header_ratio: u64 = group,
        /// Memory of a port's queue of headers and control packets; default: that of 8 full
        /// packets.
        header_queue_bytes: u64 = group,
        /// Treatment of a trimmed packet that does not fit into the header queue.
        header_overflow: HeaderOverflow = group,
        /// Priority flow control, a table; default: off, unless the transport needs it.
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
