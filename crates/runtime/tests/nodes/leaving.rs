//! A program that ends while messages arrive for it, for each transport of hosts.

use crate::bed::{Testbed, TrafficPattern};
use crate::net::MessageOutcomes;
use rampmeter_proto::catalogue::{Catalogue, Visitor};
use rampmeter_proto::cosy::CosyTransport;
use rampmeter_proto::{Builtin, HostCatalogue, RegisteredTransport};
use rampmeter_types::{Span, Time, Transport};

const MESSAGES: u64 = 300;
/// Time for which nodes wait for programs (`docs/howto/operate.md`), and for the last answers.
const REFUSED_AFTER: Span = Span::from_us(2_050_000);
/// Maximum number of datagrams of a waiting message, counted at both ends. 60 are its packets.
/// Senders that probe every 4 ms (Homa, SIRD) add four each time.
const PER_MESSAGE_MAX: u64 = 2_100;
const SECOND: Span = Span::from_us(1_000_000);

/// Nodes of which one has messages for a program that has just ended.
fn left_by<T: RegisteredTransport>() -> (Testbed, Time) {
    let mut bed = Testbed::new::<T>(TrafficPattern::Long, MESSAGES);
    let is_begun = |fates: &MessageOutcomes| fates.delivered >= 5;
    let left_at = bed.run_until(Time::ZERO + SECOND, Span::ZERO, is_begun);
    bed.fates.borrow_mut().is_gone = true;
    (bed, left_at)
}

fn n_handled(bed: &Testbed) -> u64 {
    bed.links.borrow().handled.iter().sum()
}

/// Returns the number of datagrams that nodes without messages send and receive.
fn idle<T: RegisteredTransport>(duration: Span) -> u64 {
    let mut bed = Testbed::new::<T>(TrafficPattern::Long, 0);
    bed.run_until(Time::ZERO + SECOND, Span::ZERO, |_| false);
    let before = n_handled(&bed);
    bed.run_until(Time::ZERO + SECOND + duration, Span::ZERO, |_| false);
    n_handled(&bed) - before
}

struct RefusalVisitor;

impl Visitor for RefusalVisitor {
    fn transport<T: RegisteredTransport>(&mut self) {
        let (mut bed, left_at) = left_by::<T>();
        let is_over = |fates: &MessageOutcomes| fates.completed + fates.failed == MESSAGES;
        let end = bed.run_until(left_at + SECOND * 20, Span::ZERO, is_over);
        let (n_waiting, took) = (n_handled(&bed), end - left_at);
        let fates = bed.fates.borrow().clone();
        bed.run_until(end + SECOND * 5, Span::ZERO, |_| false);
        let n_after = n_handled(&bed) - n_waiting;
        let of = T::NAME;
        assert!(is_over(&fates) && fates.failed > 0, "{of}: {fates:?}");
        assert!(took <= REFUSED_AFTER, "{of}: outcomes after {took}");
        // Schedules of arbiters are sent without messages too.
        let (idle_waiting, idle_after) = (idle::<T>(took), idle::<T>(SECOND * 5));
        let per_message = n_waiting.saturating_sub(idle_waiting) / MESSAGES;
        assert!(per_message <= PER_MESSAGE_MAX, "{of}: {per_message} datagrams a message");
        assert!(n_after <= idle_after + 500, "{of}: {n_after}, idle {idle_after}");
    }
}

#[test]
fn messages_for_an_ended_program_are_refused_and_leave_no_state() {
    HostCatalogue::<Builtin>::visit(&mut RefusalVisitor);
}

struct ResumptionVisitor;

impl Visitor for ResumptionVisitor {
    fn transport<T: RegisteredTransport>(&mut self) {
        // The bound of cosy's messages is shorter.
        if T::NAME == CosyTransport::NAME {
            return;
        }
        let (mut bed, left_at) = left_by::<T>();
        let back_at = bed.run_until(left_at + SECOND, Span::ZERO, |_| false);
        bed.fates.borrow_mut().is_gone = false;
        let is_over = |fates: &MessageOutcomes| fates.completed + fates.failed == MESSAGES;
        let end = bed.run_until(back_at + SECOND * 20, Span::ZERO, is_over);
        let fates = bed.fates.borrow().clone();
        assert_eq!((fates.completed, fates.failed), (MESSAGES, 0), "{}", T::NAME);
        assert!(end - back_at <= SECOND, "{}: {}", T::NAME, end - back_at);
    }
}

/// A program that is restarted within a second receives all messages.
#[test]
fn messages_wait_for_a_program_that_is_restarted() {
    HostCatalogue::<Builtin>::visit(&mut ResumptionVisitor);
}
