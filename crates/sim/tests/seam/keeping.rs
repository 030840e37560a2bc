//! Programs of switches that take packets out of the fabric.

use std::collections::VecDeque;

use super::*;

const FOR: Span = Span::from_us(2);

/// Keeps every packet for a while, and then sends it by a port that it chooses.
#[derive(Debug, Default)]
struct Keeps {
    held: VecDeque<(Time, u32, Packet<BlastHeader>)>,
    ready: VecDeque<(u32, Packet<BlastHeader>)>,
    kept: u64,
    held_max: u64,
    is_on: bool,
}

impl SwitchProgram<BlastHeader> for Keeps {
    const HANDLES_FORWARD: bool = true;
    const HAS_TIMERS: bool = true;

    fn is_enabled(&self) -> bool {
        self.is_on
    }

    fn on_forward(
        &mut self,
        crossing: TransitPacket<'_>,
        packet: &mut Packet<BlastHeader>,
    ) -> Verdict {
        let port = crossing.egress.expect("a way to every host");
        self.held.push_back((crossing.now + FOR, port, *packet));
        self.kept += 1;
        self.held_max = self.held_max.max(self.held.len() as u64);
        Verdict::Consume
    }

    fn poll_timeout(&self) -> Time {
        self.held.front().map_or(Time::NEVER, |(at, ..)| *at)
    }

    fn handle_timeout(&mut self, now: Time) {
        while self.held.front().is_some_and(|(at, ..)| *at <= now) {
            self.ready.extend(self.held.pop_front().map(|(_, port, packet)| (port, packet)));
        }
    }

    fn poll_transmit(&mut self) -> Option<(u32, Packet<BlastHeader>)> {
        self.ready.pop_front()
    }

    fn counters(&self, each: &mut dyn FnMut(&'static str, u64)) {
        each("kept", self.kept);
        each("held_max", self.held_max);
    }
}

transport!(Keeping, Keeps, _switch => Keeps { is_on: true, ..Keeps::default() });
transport!(Passing, Keeps, _switch => Keeps::default());

#[test]
fn packets_that_a_program_keeps_arrive_when_it_sends_them() {
    let arrivals = || vec![to_first(0, 1, 10), to_first(0, 2, 10), to_first(30_000, 3, 1)];
    let (kept, passed) = (
        run::<Keeping>(spec(4), Segmentation::default(), arrivals()),
        run::<Passing>(spec(4), Segmentation::default(), arrivals()),
    );
    // The end of the run has checked that no packet was lost track of.
    assert_eq!((kept.counters().delivered, passed.counters().delivered), (3, 3));
    let n = kept.fabric().stats().consumed;
    let (injected, delivered) = (kept.fabric().stats().injected, kept.fabric().stats().delivered);
    assert_eq!((n, injected, delivered), (delivered, 2 * n, passed.fabric().stats().delivered));
    assert_eq!(passed.fabric().stats().consumed, 0, "a program that is off sees nothing");
    // The last message waits there, and its acknowledgement.
    assert_eq!(kept.now(), passed.now() + FOR * 2);
    let total = |name: &str, counters: &[(&str, u64)]| {
        counters.iter().find(|(counter, _)| *counter == name).map(|(_, value)| *value)
    };
    let counters = kept.transport_counters();
    let most = kept.fabric().program(0).held_max;
    assert_eq!((total("kept", &counters), total("held_max", &counters)), (Some(n), Some(most)));
    assert!(most > 1 && most < n);
}

/// Counters of several programs are added up, but the greatest of maxima is reported.
#[test]
fn counters_of_programs_are_added_up_but_maxima_are_not() {
    let text = "kind = 'dumbbell'\nhosts-per-side = 2";
    let topology = toml::from_str::<TopologySpec>(text).unwrap().build().unwrap();
    let spec = SimSpec { topology, ..spec(4) };
    let sim =
        run::<Keeping>(spec, Segmentation::default(), vec![to_first(0, 1, 4), to_first(0, 2, 9)]);
    let programs = [0, 1].map(|switch| sim.fabric().program(switch));
    let counters = sim.transport_counters();
    let of = |name: &str| counters.iter().find(|(known, _)| *known == name).unwrap().1;
    assert_eq!(of("kept"), programs.iter().map(|program| program.kept).sum::<u64>());
    assert_eq!(of("held_max"), programs.iter().map(|program| program.held_max).max().unwrap());
    assert!(of("kept") > programs[0].kept && programs[1].kept > 0);
}
