//! The packets of every transport, for those who go through all of them: tests, fuzzing, sample
//! captures, and the tables of the dissector and the documents.

use rampmeter_core::envelope::TransportId;
use rampmeter_core::wire::Wire;

use crate::cosy::wire::CosyHeader;
use crate::dcpim::wire::DcpimHeader;
use crate::fastpass::wire::FastpassHeader;
use crate::pfabric::wire::PfabricHeader;
use crate::phost::wire::PhostHeader;

/// The packets of every transport, by its number on the wire.
pub const fn formats() -> &'static [Wire] {
    const {
        &[
            Wire::of::<DcpimHeader>(TransportId::DCPIM, "dcpim", "dcPIM"),
            Wire::of::<PhostHeader>(TransportId::PHOST, "phost", "pHost"),
            Wire::of::<PfabricHeader>(TransportId::PFABRIC, "pfabric", "pFabric"),
            Wire::of::<FastpassHeader>(TransportId::FASTPASS, "fastpass", "Fastpass"),
            Wire::of::<CosyHeader>(TransportId::COSY, "cosy", "cosy"),
        ]
    }
}
