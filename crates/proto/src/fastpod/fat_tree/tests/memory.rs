//! Memory of a core switch under arbiters that obey late, and its overflow.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use rampmeter_types::{Packet, Purpose, Rng, Span, Time, Verdict};

use super::{Bench, HOP, N, SLOT, at, cell, fastpod, nothing};
use crate::fastpod::config::{Fastpod, FastpodConfig};
use crate::fastpod::packing::CellTime;
use crate::fastpod::timing::Instant;
use crate::fastpod::wire::FastpodHeader;

/// Arbiters that obey as late as they may, and their hosts.
struct Sources {
    bench: Bench,
    /// Offsets of the clocks of pods from the true clock.
    offsets: Vec<u64>,
    rooms: Vec<u32>,
    /// RTSs and cells in flight: their time of arrival, and the packet.
    under_way: BTreeMap<(Time, u64), Came>,
    n: u64,
    rng: Rng,
    /// The pod that all send to; any if none.
    to: Option<u16>,
}

enum Came {
    Room(u16, u32),
    Tick(u16, u64),
    Cell(u16, u16, u16),
}

impl Sources {
    fn new(fastpod: &Arc<Fastpod>, to: Option<u16>, seed: u64) -> Self {
        let mut rng = Rng::new(seed, 0, Purpose::Test);
        let n_pods = fastpod.n_pods();
        let offsets = (0..n_pods).map(|_| rng.uniform_below(50_000_000) as u64).collect();
        let (bench, rooms) = (Bench::new(fastpod), vec![0; n_pods.into()]);
        let mut sources = Self { bench, offsets, rooms, under_way: BTreeMap::new(), n: 0, rng, to };
        for pod in 0..n_pods {
            let offset = sources.offsets[usize::from(pod)] as i64;
            sources.bench.schd(at(60_000_000), pod, offset, nothing());
            let now = 60_000_000 + i128::from(offset);
            let slot = fastpod.timing(pod).tick_after(0, now).unwrap();
            sources.tick_later(pod, slot);
        }
        sources
    }

    fn later(&mut self, at: Time, event: Came) {
        self.n += 1;
        self.under_way.insert((at, self.n), event);
    }

    /// Returns an instant by the true clock.
    fn global(&self, pod: u16, at: Instant) -> Time {
        Time::from_ps((at - i128::from(self.offsets[usize::from(pod)])) as u64)
    }

    fn tick_later(&mut self, pod: u16, slot: u64) {
        let tick = self.bench.fastpod.timing(pod).tick_at(0, slot);
        self.later(self.global(pod, tick), Came::Tick(pod, slot));
    }

    fn run(&mut self, until: Time) {
        loop {
            let due = self.under_way.first_key_value().map_or(Time::NEVER, |((at, _), _)| *at);
            // RTSs take longer than the switch is run ahead.
            let step = due.min(until);
            self.bench.run(step);
            let hear = HOP + Span::from_ps(5_120 + 1_000_000 + 100_000);
            while let Some((sent, pod, packet)) = self.bench.sent.pop_front() {
                if let FastpodHeader::CoreRts { open, .. } = packet.header {
                    self.later(sent + hear, Came::Room(pod, open));
                }
            }
            let Some(first) = self.under_way.first_entry().filter(|e| e.key().0 <= until) else {
                return;
            };
            let ((now, _), what) = first.remove_entry();
            match what {
                Came::Room(pod, open) => self.rooms[usize::from(pod)] = open,
                Came::Tick(pod, slot) => self.tick(now, pod, slot),
                Came::Cell(from, to, wire_bytes) => {
                    let (n, from_host) = (u32::from(N * N), u32::from(from * N * N));
                    let dst = u32::from(to) * n + self.rng.uniform_below(n as usize) as u32;
                    let packet = Packet { wire_bytes, ..cell(from_host, dst, 0) };
                    self.bench.give(now, from, packet);
                }
            }
        }
    }

    /// The arbiter gives the slot to a pod with space by the last RTS received.
    fn tick(&mut self, now: Time, pod: u16, slot: u64) {
        let fastpod = Arc::clone(&self.bench.fastpod);
        let timing = fastpod.timing(pod);
        self.tick_later(pod, slot + 1);
        if slot.is_multiple_of(64) {
            let offset = self.offsets[usize::from(pod)] as i64;
            self.bench.schd(now, pod, offset, nothing());
        }
        let n_pods = usize::from(fastpod.n_pods());
        let to = self.to.unwrap_or_else(|| self.rng.uniform_below(n_pods) as u16);
        if self.rooms[usize::from(pod)] & 1 << to == 0 {
            return;
        }
        // At the core switch: two hops after the rack, at which the slot is a hop late.
        let start = i128::from((slot + timing.lead_slots) * SLOT + HOP.as_ps() * 3);
        for p in 0..N - 1 {
            let position = fastpod.slots.cell_at(p, (0, fastpod.core_place(6)));
            let at = self.global(pod, start + i128::from(position.as_ps()));
            let mut time = CellTime::default();
            let any = |rng: &mut Rng| {
                let most = [100, 1_437][rng.uniform_below(2)];
                64 + rng.uniform_below(most) as u16
            };
            let mut bytes = if fastpod.config.packing { any(&mut self.rng) } else { 1_500 };
            while let Some(begin) = time.place(bytes, &fastpod) {
                self.later(at + begin, Came::Cell(pod, to, bytes));
                bytes = any(&mut self.rng);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// No destination answers, and every source uses the switch as long as it may. The switch holds
    /// at most the limit and the cells in flight at its notification. With one destination the
    /// limit of a queue holds, with several that of the switch.
    #[test]
    fn memory_is_bounded(
        seed in any::<u64>(),
        n_pods in 2u16..6,
        core_queue_cells in 1u32..200,
        is_one in any::<bool>(),
        packing in any::<bool>(),
    ) {
        let core_buffer_cells = core_queue_cells * 2;
        let paper = FastpodConfig { packing, ..FastpodConfig::paper() };
        let config = FastpodConfig { core_queue_cells, core_buffer_cells, ..paper };
        let fastpod = fastpod(config, n_pods);
        let to = is_one.then_some(0);
        let mut sources = Sources::new(&fastpod, to, seed);
        sources.run(at(60_000_000) + fastpod.slot * 500);
        let bench = &sources.bench;
        let (held, queue) = (bench.counter("core_cells_max"), bench.counter("core_queue_max"));
        let on_way = fastpod.timing(0).in_flight_to_core * u64::from(N - 1);
        let limit = u64::from(core_queue_cells);
        prop_assert!(queue <= limit + on_way * u64::from(n_pods - 1));
        prop_assert!(held <= fastpod.core_cells_max());
        let (fullest, full) = if is_one { (queue, limit) } else { (held, limit * 2) };
        prop_assert!(fullest >= full);
        prop_assert_eq!(bench.counter("core_overflows"), 0);
        // The bound is not far off: if cells are full, half of the limit is in flight.
        prop_assert!(!is_one || packing || queue >= limit + on_way * u64::from(n_pods - 1) / 2);
    }
}

/// A packet more than there is memory for is dropped and counted.
#[test]
fn cells_beyond_the_memory_of_a_core_switch_are_counted() {
    let config =
        FastpodConfig { core_queue_cells: 1, core_buffer_cells: 1, ..FastpodConfig::paper() };
    let fastpod = fastpod(config, 2);
    let mut bench = Bench::new(&fastpod);
    for n in 0..fastpod.core_cells_max() {
        assert_eq!(bench.give(at(1), 0, cell(0, 20, n as u32)), Verdict::Consume);
    }
    assert_eq!(bench.give(at(1), 0, cell(0, 20, 0)), Verdict::Drop);
    assert_eq!(bench.counter("core_overflows"), 1);
}
