//! Cells that several packets share (§3.2).

use proptest::prelude::*;
use rampmeter_types::{Bytes, Message, MsgId, NodeId, Span, Time};

use super::pod::{CABLE, HEADER, HOST, RATE, Run, SWITCH, fastpod};
use super::{ONE_MS, alike, assert_all_fine, config, us};
use crate::fastpod::packing::CellTime;
use crate::fastpod::pod::queues::Queues;
use crate::fastpod::{Fastpod, FastpodConfig, MessageOrder};

fn packed() -> FastpodConfig {
    FastpodConfig { packing: true, ..config() }
}

/// Returns the bytes of a message: many short ones, and some of one cell exactly or of a byte more.
fn sizes(n: usize) -> impl Strategy<Value = Vec<u64>> {
    let size = prop_oneof![
        3 => 1u64..400,
        2 => 400u64..1_460,
        1 => prop_oneof![Just(1u64), Just(24), Just(1_460), Just(1_461), Just(2_920)],
        1 => 1_460u64..9_000,
    ];
    prop::collection::vec(size, 1..n)
}

/// A packet that was sent by schedule: in which cell, when from its start, its bytes on the wire,
/// and its message, offset and length.
type SentPacket = (u64, Span, u16, (u32, u64, u64));

/// Sends all messages to one destination in as many cells as it takes.
fn send_all(fastpod: &Fastpod, sizes: &[u64]) -> (u64, Vec<SentPacket>) {
    let mut queues = Queues::new(NodeId::new(0), 0, fastpod);
    for (number, &size) in (0..).zip(sizes) {
        let message = Message::new(MsgId::new(number), NodeId::new(1), Bytes::new(size));
        queues.submit(Time::ZERO, &message, fastpod);
    }
    let n_cells = queues.cells_wanted(1, fastpod);
    let (mut cell, mut sent) = (0, Vec::new());
    while queues.waiting(1) > 0 {
        let mut time = CellTime::default();
        while let Some((packet, begin, _)) =
            queues.next_scheduled(Time::ZERO, 1, &mut time, fastpod)
        {
            let of = packet.payload;
            sent.push((cell, begin, packet.wire_bytes, (of.msg.get(), of.offset, of.len.into())));
        }
        cell += 1;
    }
    assert!(!queues.has_waiting() && queues.cells_wanted(1, fastpod) == 0);
    (n_cells, sent)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Every byte of every message is sent once and in order. Packets of a cell follow one another
    /// and end with it, and a cell ends only before a packet that does not fit.
    #[test]
    fn cells_are_filled_and_not_overfilled(
        sizes in sizes(100),
        fifo in any::<bool>(),
        clock_ppb in prop_oneof![Just(0u32), Just(100_000)],
    ) {
        let order = if fifo { MessageOrder::Fifo } else { MessageOrder::Srpt };
        let fastpod = alike(FastpodConfig { message_order: order, clock_ppb, ..packed() }, 2, 2);
        let (n_cells, sent) = send_all(&fastpod, &sizes);
        let cells = sent.last().unwrap().0 + 1;
        // As many cells are requested as are used, or fewer if there are many messages.
        prop_assert!(n_cells <= cells, "{n_cells} of {cells}");
        prop_assert!(sizes.len() > 64 || n_cells == cells, "{n_cells} of {cells}");
        let mut offsets = vec![0; sizes.len()];
        let mut end = Span::ZERO;
        for (n, &(cell, begin, bytes, (msg, offset, len))) in sent.iter().enumerate() {
            let is_first = n == 0 || sent[n - 1].0 < cell;
            let tx = RATE.tx_time(Bytes::new(bytes.into()));
            if is_first {
                let latest = (end + tx.max(fastpod.late_max)).as_ps();
                prop_assert!(n == 0 || latest > fastpod.slots.cell.as_ps(), "packet {n} fitted");
                end = Span::ZERO;
            }
            prop_assert_eq!(begin, end);
            end += tx;
            prop_assert!(end <= fastpod.slots.cell);
            prop_assert_eq!(u64::from(bytes), (len + 40).max(64));
            prop_assert_eq!(offset, offsets[msg as usize]);
            offsets[msg as usize] += len;
        }
        prop_assert_eq!(offsets, sizes);
    }

    /// A cell without packing has one packet, as long as the cell.
    #[test]
    fn cells_are_not_shared_without_the_option(sizes in sizes(20)) {
        let fastpod = alike(config(), 2, 2);
        let mut queues = Queues::new(NodeId::new(0), 0, &fastpod);
        let mut cells = 0;
        for (number, &size) in (0..).zip(&sizes) {
            let message = Message::new(MsgId::new(number), NodeId::new(1), Bytes::new(size));
            queues.submit(Time::ZERO, &message, &fastpod);
            cells += size.div_ceil(1_460);
        }
        prop_assert_eq!(queues.cells_wanted(1, &fastpod), cells);
        let mut time = CellTime::default();
        let (packet, ..) = queues.next_scheduled(Time::ZERO, 1, &mut time, &fastpod).unwrap();
        prop_assert_eq!(packet.wire_bytes, 1_500);
        prop_assert!(queues.next_scheduled(Time::ZERO, 1, &mut time, &fastpod).is_none());
    }

    /// A receiver infers the slot of a packet from its beginning, within the errors of clocks. The
    /// first packet of a slot may be early, and the last one of the slot before late.
    #[test]
    fn packets_of_adjacent_slots_are_distinguished(
        clock_ppb in prop_oneof![Just(0u32), Just(10_000), Just(100_000)],
        (i, j) in (0u16..4, 0u16..4),
        slot in 1u64..1_000,
    ) {
        let fastpod = alike(FastpodConfig { clock_ppb, ..packed() }, 2, 4);
        let (timing, slots) = (fastpod.timing(0), &fastpod.slots);
        // Host `j` of the second rack.
        let end = 4 + j;
        let arrival_of = |p: u16, begin: Span, error: i128| {
            let position = slots.cell_at(p, (i, j)) + begin;
            let delay = timing.schd_delay(0, end).as_ps();
            timing.schd_at(0, end, slot, position) + i128::from(delay) + error
        };
        let (early, clock) =
            (i128::from(slots.error.as_ps()), i128::from(fastpod.late_max.as_ps()));
        let mut time = CellTime::default();
        let mut last = Span::ZERO;
        while let Some(begin) = time.place(64, &fastpod) {
            last = begin;
        }
        for p in 0..slots.cells() {
            for (begin, error) in [(Span::ZERO, -early), (last, (early + clock - 1).max(0))] {
                let arrival = arrival_of(p, begin, error);
                let of = timing.slot_of_arrival(end, arrival).map(|(slot, _)| slot);
                prop_assert_eq!(of, Some(slot), "cell {}, error {}", p, error);
            }
        }
    }
}

/// Ten messages of 100 bytes take one cell, back to back, and arrive one after the other.
#[test]
fn short_messages_share_a_cell() {
    let fastpod = alike(FastpodConfig { optimistic: false, ..packed() }, 4, 4);
    let mut run = Run::new(&fastpod, 1);
    let slot = fastpod.slot.as_ps();
    let at = Time::from_ps(slot * 100);
    let messages: Vec<_> = (0..10).map(|_| run.submit(at, 0, 5, 100)).collect();
    run.run(ONE_MS);
    // Three acknowledgements fit an RTS, so that the last ones wait for three more.
    assert_all_fine(&run);
    assert_eq!(run.stats().slots_unused, 0);
    let arrival_of =
        at + (RATE.tx_time(HEADER) + CABLE + SWITCH) + (fastpod.slots.control + CABLE + HOST);
    let decided = fastpod.timing(0).tick_after(0, i128::from(arrival_of.as_ps())).unwrap();
    let begins =
        Time::from_ps(slot * (decided + fastpod.lead_slots)) + fastpod.slots.cell_at(0, (0, 1));
    let hop = RATE.tx_time(HEADER) + CABLE + SWITCH;
    let tx = RATE.tx_time(Bytes::new(140));
    for (n, msg) in (1..).zip(messages) {
        assert_eq!(run.delivered[&msg], begins + tx * n + hop * 3 + CABLE + HOST, "message {n}");
    }
}

/// Hosts that send many short messages to one another need fewer slots with packing.
#[test]
fn packing_saves_slots() {
    let took = [false, true].map(|packing| {
        let fastpod = alike(FastpodConfig { optimistic: false, packing, ..config() }, 2, 4);
        let mut run = Run::new(&fastpod, 1);
        for n in 0..60 {
            for src in 0..4 {
                run.submit(us(20) + Span::from_ns(n), src, 4 + src, 600);
            }
        }
        run.run(ONE_MS);
        assert_all_fine(&run);
        *run.delivered.values().max().unwrap() - us(20)
    });
    // Two of 640 bytes share a cell: 10 slots instead of 20, and the last ends 220 bytes earlier.
    let saved = alike(packed(), 2, 4).slot * 10 + RATE.tx_time(Bytes::new(220));
    assert_eq!(took[0], took[1] + saved);
}

/// On other networks, which lose and delay packets, packets share cells too.
#[test]
fn packets_share_cells_over_networks_that_lose_packets() {
    for seed in 0..8 {
        let fastpod = fastpod(packed(), None, 6);
        let mut run = Run::new(&fastpod, seed);
        run.loss = 0.05;
        super::fill(&mut run, 6, 100, 100, seed);
        run.run(Time::ZERO + Span::from_us(200_000));
        let n = run.messages.len();
        assert_eq!((run.delivered.len(), run.completed.len(), run.failed.len()), (n, n, 0));
    }
}
