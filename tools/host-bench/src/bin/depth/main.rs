//! Processor time per message if many are queued: 200 B each, submitted at once, both ends
//! together.
//!
//!     cargo run --release -p rampmeter-host-bench --bin depth [TRANSPORT] [SHAPE] [MESSAGES ...]
//!
//! In memory, on simulated time; queues of 500 KB at the receivers. Shapes: `out`: one node sends
//! to 16. `in`: 16 send to one. `one`: one sends to one. `third`: one sends to one, and pings a
//! third node meanwhile; nodes take 2 us of simulated time for each datagram. `two`: the same with
//! two programs that send; `slow`: nodes take 30 us. `sim`: as many flows of a pair in the
//! simulator, from 10 % of the smallest number up to 100 000.

#![allow(clippy::print_stdout, reason = "a program")]

#[path = "../../../../../crates/runtime/tests/common/bed.rs"]
mod bed;
#[path = "../../../../../crates/runtime/tests/common/net.rs"]
mod net;
mod simulated;

use bed::{Outcome, TrafficPattern, run};
use net::MessageOutcomes;
use rampmeter_proto::catalogue::{Catalogue, Visitor};
use rampmeter_proto::{Builtin, HostCatalogue, RegisteredTransport};

/// Runs every transport, or one, with each number of messages.
struct Table {
    only: Option<String>,
    shape: Option<String>,
    messages: Vec<u64>,
}

impl Visitor for Table {
    fn transport<T: RegisteredTransport>(&mut self) {
        if self.only.as_ref().is_some_and(|only| only != T::NAME) {
            return;
        }
        let is_wanted = |name: &str| self.shape.as_ref().is_none_or(|shape| shape == name);
        let shapes = [
            ("out", TrafficPattern::Out),
            ("in", TrafficPattern::In),
            ("one", TrafficPattern::One),
            ("third", TrafficPattern::Third),
            ("two", TrafficPattern::Two),
            ("slow", TrafficPattern::Slow),
        ];
        for (name, shape) in shapes.into_iter().filter(|(name, _)| is_wanted(name)) {
            let mut first = None;
            for &n in &self.messages {
                let n = n / 16 * 16;
                let Outcome { fates, excess, dropped, ended, processor } = run::<T>(shape, n);
                let ns = processor.as_ps() as f64 / 1_000.0 / n as f64;
                let ratio = ns / *first.get_or_insert(ns);
                let MessageOutcomes {
                    completed, failed, delivered, mut pings, pings_failed, ..
                } = fates;
                let ms = ended.as_ps() / 1_000_000_000;
                println!(
                    "{:<12} {name:<4} {n:>8} messages: {ns:>7.0} ns each, {ratio:.2}; {completed} \
                     completed, {failed} failed, {delivered} delivered, {excess} too many, \
                     {dropped} packets dropped, {ms} ms",
                    T::NAME,
                );
                if shape.has_pings() {
                    pings.sort_unstable_by_key(|(_, took)| *took);
                    let us =
                        |nth: usize| pings.get(nth).map_or(0, |(_, took)| took.as_ps() / 1_000_000);
                    println!(
                        "{:<12} pings of a third node: {}, median {} us, longest {} us; \
                         {pings_failed} failed",
                        T::NAME,
                        pings.len(),
                        us(pings.len() / 2),
                        us(pings.len().saturating_sub(1)),
                    );
                }
            }
        }
        if !is_wanted("sim") {
            return;
        }
        let least = self.messages.first().map_or(1_000, |n| n / 10);
        let mut first = None;
        let numbers = [least, least * 10, 100_000];
        for flows in numbers.into_iter().filter(|&n| n < 100_000 || n == 100_000 && least < 10_000)
        {
            let (processor, completed) = simulated::pair::<T>(flows);
            let ns = processor.as_ps() as f64 / 1_000.0 / flows as f64;
            let ratio = ns / *first.get_or_insert(ns);
            println!(
                "{:<12} sim  {flows:>8} flows:    {ns:>7.0} ns each, {ratio:.2}; {completed} \
                 completed",
                T::NAME,
            );
        }
    }
}

fn main() {
    let (mut only, mut shape, mut messages) = (None, None, Vec::new());
    for arg in std::env::args().skip(1) {
        match arg.parse() {
            Ok(n) => messages.push(n),
            Err(_)
                if ["out", "in", "one", "third", "two", "slow", "sim"].contains(&arg.as_str()) =>
            {
                shape = Some(arg)
            }
            Err(_) => only = Some(arg),
        }
    }
    if messages.is_empty() {
        messages = vec![10_000, 100_000, 1_000_000];
    }
    HostCatalogue::<Builtin>::visit(&mut Table { only, shape, messages });
}
