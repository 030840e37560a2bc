//! Cells that several packets share (§3.2): with `packing` the time of a scheduled cell is filled
//! with packets to one destination, back to back.
//!
//! Packets are taken in the order of their queue, and the first that does not fit begins the next
//! cell (next fit). All of them are within the time of the cell, so slots, gaps and the arbiter are
//! not affected. Demands count cells, as without packing.

use rampmeter_types::{Bytes, Span};

use super::config::Fastpod;

/// Messages whose cells are counted one by one. Those behind them in a queue are counted by their
/// bytes, which is never too much.
const COUNTED_MAX: usize = 64;

/// The time of one cell on a link, which packets take from its start on.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CellTime {
    used: Span,
}

impl CellTime {
    /// Returns true if a packet has taken some of it.
    #[inline]
    pub(super) fn is_used(&self) -> bool {
        self.used > Span::ZERO
    }

    /// Reserves the time of a packet of this many bytes on the wire. Returns its start, from the
    /// start of the cell; `None` if there is no time for it.
    ///
    /// Every packet begins before the end of the cell by the error of a clock at least: receivers
    /// infer its slot from its beginning.
    #[inline]
    pub(super) fn place(&mut self, wire_bytes: u16, fastpod: &Fastpod) -> Option<Span> {
        let begin = self.used;
        let tx = fastpod.tx_time(wire_bytes);
        if self.is_used() && begin + tx.max(fastpod.late_max) > fastpod.slots.cell {
            return None;
        }
        self.used += tx;
        Some(begin)
    }
}

impl Fastpod {
    /// Returns the bytes of a whole cell.
    #[inline]
    pub(super) fn cell_bytes(&self) -> u64 {
        self.segmentation().full_wire_bytes().get()
    }

    /// Returns the time that a packet takes on a link.
    #[inline]
    pub(super) fn tx_time(&self, wire_bytes: u16) -> Span {
        self.rate.tx_time(Bytes::new(wire_bytes.into()))
    }

    /// Returns the bytes charged to a data packet of `wire_bytes`. Switches forward no packet
    /// shorter than a control packet.
    #[inline]
    pub(super) fn charged_bytes(&self, wire_bytes: u16) -> u16 {
        match self.config.packing {
            true => wire_bytes.max(self.config.control.get() as u16),
            false => wire_bytes,
        }
    }

    /// Returns the number of whole cells with `bytes` bytes.
    #[inline]
    pub(super) fn cell_count(&self, bytes: u64) -> u64 {
        bytes.div_ceil(self.cell_bytes())
    }
}

/// Returns the cells of a queue's messages, sent in this order. Each has some whole cells and then
/// a last packet of this many bytes. All packets of the queue have `bytes` on the wire.
pub(super) fn cells_of(
    messages: impl Iterator<Item = (u32, u16)>,
    bytes: u64,
    fastpod: &Fastpod,
) -> u64 {
    let whole_bytes = fastpod.cell_bytes();
    // Of the cell that the last message ends in: its time, and the bytes that it has room for.
    let (mut last_cell, mut room) = (None::<CellTime>, 0_u64);
    let (mut cells, mut rest) = (0, bytes);
    for (whole, last) in messages.take(COUNTED_MAX) {
        let last_bytes = u64::from(last);
        rest -= u64::from(whole) * whole_bytes + last_bytes;
        if whole > 0 {
            cells += u64::from(whole);
            last_cell = None;
        }
        if last_cell.as_mut().is_some_and(|cell| cell.place(last, fastpod).is_some()) {
            room = room.saturating_sub(last_bytes);
            continue;
        }
        cells += 1;
        last_cell.insert(CellTime::default()).place(last, fastpod);
        room = whole_bytes.saturating_sub(last_bytes);
    }
    cells + rest.saturating_sub(room).div_ceil(whole_bytes)
}
