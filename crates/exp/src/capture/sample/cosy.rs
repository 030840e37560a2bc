//! The packets of cosy.

use rampmeter_core::WireError;
use rampmeter_core::envelope::TransportId;
use rampmeter_proto::cosy::wire::{CosyHeader, Route, Why};

use super::{
    CONTROL, DATA, FLOW, Fields, NUMBER, Part, SEQ, SIZE, SLOT, Sample, Samples, Told, sample,
};

impl Told for Route {
    fn tell(&self, name: &str, fields: &mut Fields) {
        let parts: [Part<u16>; 1] = [("port", u64::from)];
        fields.insert_items(name, self.ports(), parts);
    }
}

impl Told for Why {
    fn tell(&self, name: &str, fields: &mut Fields) {
        fields.insert(name, *self as u8);
    }
}

pub(super) fn cosy() -> Result<Vec<Sample>, WireError> {
    let mut to = Samples { transport: TransportId::COSY, name: "cosy", samples: Vec::new() };
    let mut route = Route::default();
    for port in [3, 259, 5] {
        route.push(port);
    }
    let way = route;
    sample!(to, CONTROL, 1, CosyHeader::Request { flow: FLOW, tx_slot: SLOT, size: SIZE });
    sample!(
        to,
        CONTROL,
        2,
        CosyHeader::Rsvp {
            tx_slot: SLOT,
            seq: SEQ,
            lease_us: 1_234_567,
            rx_slot: 14,
            link: 271,
            last: true,
            route: way,
        }
    );
    sample!(
        to,
        CONTROL,
        3,
        CosyHeader::Release { seq: SEQ, rx_slot: 14, link: 271, why: Why::Done, route: way }
    );
    sample!(to, CONTROL, 4, CosyHeader::Reject { tx_slot: SLOT });
    sample!(
        to,
        DATA,
        5,
        CosyHeader::Data {
            seq: SEQ,
            number: NUMBER,
            rx_slot: 14,
            link: 271,
            last: false,
            route: Route::default(),
        }
    );
    sample!(to, CONTROL, 6, CosyHeader::Complete { tx_slot: SLOT });
    sample!(to, CONTROL, 7, CosyHeader::Failure { tx_slot: SLOT });
    Ok(to.samples)
}
