//! Stop and wait: the smallest transport, in a crate outside the repository.
//!
//! * [`config`]: parameters, and the values derived from them on a network
//! * [`wire`]: the packets
//! * [`host`]: the state machine
//! * this file: the transport, the list for the daemon, the module for Python
//!
//! `docs/howto/add-a-protocol.md` explains it.

pub mod config;
pub mod host;
pub mod wire;

use std::sync::Arc;

use pyo3::prelude::*;
use rampmeter_proto::catalogue::{Builtin, Catalogue, Visitor};
use rampmeter_proto::registered::{DerivedValue, Site};
use rampmeter_proto::{BadKey, RegisteredTransport, Segmentation};
use rampmeter_py::Registry;
use rampmeter_types::envelope::TransportId;
use rampmeter_types::{ForwardOnly, NoArbiter, SwitchFacts, Transport};

use config::{Saw, SawKeys};
use host::SawHost;
use wire::SawHeader;

/// Stop and wait: one packet of a message is in flight at a time.
#[derive(Clone, Copy, Debug)]
pub struct StopAndWait;

impl Transport for StopAndWait {
    const NAME: &'static str = "stop-and-wait";
    type Config = Saw;
    type Header = SawHeader;
    type Host = SawHost;
    type Arbiter = NoArbiter<SawHeader, Saw>;
    type SwitchProgram = ForwardOnly;

    fn switch_program(_config: &Arc<Saw>, _switch: SwitchFacts) -> ForwardOnly {
        ForwardOnly
    }
}

impl RegisteredTransport for StopAndWait {
    type Keys = SawKeys;
    const TITLE: &'static str = "stop and wait";
    const SUMMARY: &'static str = "One packet of a message in flight at a time.";
    const WIRE: TransportId = TransportId::PRIVATE;

    fn segmentation(keys: &SawKeys) -> Segmentation {
        keys.segmentation()
    }

    fn configure(keys: SawKeys, site: &Site) -> Result<Saw, BadKey> {
        SawKeys { packet: site.packet(keys.packet), ..keys }.derive(&site.facts)
    }

    fn describe(saw: &Saw) -> Vec<DerivedValue> {
        vec![DerivedValue::time("timeout", saw.timeout), DerivedValue::time("forget", saw.forget)]
    }
}

/// The transports of the daemon: those of the repository, and this one.
#[derive(Clone, Copy, Debug)]
pub struct All;

impl Catalogue for All {
    fn visit(visitor: &mut impl Visitor) {
        Builtin::visit(visitor);
        visitor.transport::<StopAndWait>();
    }
}

/// Returns the module `rampmeter._core`, with one transport more.
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    rampmeter_py::register(module, Registry::builtin().with::<StopAndWait>())
}
