//! Programs of switches with timers.

use super::*;

const EVERY: Span = Span::from_us(1);

/// Sends an empty packet to host 0 at every beat.
#[derive(Debug)]
struct Beats {
    port: u32,
    next: Time,
    at: Vec<Time>,
    is_due: bool,
}

impl SwitchProgram<BlastHeader> for Beats {
    const HANDLES_FORWARD: bool = false;
    const HAS_TIMERS: bool = true;

    fn on_forward(
        &mut self,
        _crossing: TransitPacket<'_>,
        _packet: &mut Packet<BlastHeader>,
    ) -> Verdict {
        Verdict::Forward
    }

    fn poll_timeout(&self) -> Time {
        self.next
    }

    fn handle_timeout(&mut self, now: Time) {
        assert!(now >= self.next);
        self.at.push(now);
        self.next = now + EVERY;
        self.is_due = true;
    }

    fn poll_transmit(&mut self) -> Option<(u32, Packet<BlastHeader>)> {
        let packet = Packet {
            header: BlastHeader::Data { packets: 1 },
            payload: PayloadRef { msg: MsgId::new(0), offset: 0, len: 0 },
            src: NodeId::new(1),
            dst: NodeId::new(0),
            wire_bytes: 64,
            path: 0,
            priority: Priority::HIGHEST,
            marks: Marks::NONE,
        };
        std::mem::take(&mut self.is_due).then_some((self.port, packet))
    }
}

transport!(Beating, Beats, switch => Beats {
    port: switch.first_port,
    next: Time::ZERO + EVERY,
    at: Vec::new(),
    is_due: false,
});

#[test]
fn a_program_is_called_at_its_deadlines_and_its_packets_are_sent() {
    let arrivals = vec![to_first(0, 1, 1), to_first(10_000, 1, 1)];
    let sim = run::<Beating>(spec(2), Segmentation::default(), arrivals);
    let at = &sim.fabric().program(0).at;
    let expected = (1..).map(|n| Time::ZERO + EVERY * n).take_while(|at| *at <= sim.now());
    assert!(at.iter().copied().eq(expected) && at.len() == 12, "{at:?}");
    assert_eq!(sim.endpoint(0).beats, 12);
}

#[test]
fn a_restarted_switch_has_the_timers_of_its_new_program() {
    let mut spec = spec(2);
    let (from, until) = (Time::from_ps(3_500_000), Time::from_ps(6_200_000));
    spec.faults.outages.push(Outage { target: Target::Switch(0), from, until });
    let arrivals = vec![to_first(0, 1, 1), to_first(10_000, 1, 1)];
    let sim = run::<Beating>(spec, Segmentation::default(), arrivals);
    let at = &sim.fabric().program(0).at;
    let expected = (0..).map(|n| until + EVERY * n).take_while(|at| *at <= sim.now());
    assert!(at.iter().copied().eq(expected) && at.len() >= 5, "{at:?}");
    // Beat 3 was on the link when it failed; beats 4 to 6 of the old program found it down.
    assert_eq!(sim.fabric().tier_stats()[1].drops[3], 4);
}
