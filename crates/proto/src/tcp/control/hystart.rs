//! End of slow start before the first loss: HyStart++ (RFC 9406) and HyStart (Ha, Rhee: *Taming the
//! Elephants: New TCP Slow Start*, Computer Networks 2011).

use rampmeter_types::{Span, Time};

use super::algorithm::{AckEffect, SlowStartExit};

/// Minimum number of samples in a round trip (RFC 9406 §4.3, N_RTT_SAMPLE).
const SAMPLES_MIN: u32 = 8;
/// Growth in conservative slow start is divided by this (CSS_GROWTH_DIVISOR).
const GROWTH_DIVISOR: u64 = 4;
/// Round trips of conservative slow start (CSS_ROUNDS).
const ROUNDS: u32 = 5;
/// Trains are looked at from this window on, in segments (Ha and Rhee; Linux and ns-3 have 16).
const TRAIN_WINDOW_MIN: u64 = 16;
/// Acknowledgements further apart than this are of different trains (Ha and Rhee §4.2).
const TRAIN_GAP_MAX: Span = Span::from_us(2_000);

/// Action of slow start after an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// Grow by this many bytes.
    Bytes(u64),
    /// End.
    End,
}

/// The state of one connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HyStart {
    exit: SlowStartExit,
    /// The round trip ends when this byte is acknowledged.
    round_end: u64,
    round_start: Time,
    last_ack: Time,
    last_min: Option<Span>,
    current_min: Option<Span>,
    samples: u32,
    path_min: Option<Span>,
    /// Conservative slow start: the round trips in it, and the shortest before it.
    conservative: Option<(u32, Span)>,
}

impl HyStart {
    /// Returns a connection in its first round trip.
    pub fn new(exit: SlowStartExit) -> Self {
        Self {
            exit,
            round_end: 0,
            round_start: Time::ZERO,
            last_ack: Time::ZERO,
            last_min: None,
            current_min: None,
            samples: 0,
            path_min: None,
            conservative: None,
        }
    }

    /// Handles a timeout: earlier samples are no evidence of later ones.
    pub fn restart(&mut self) {
        *self = Self::new(self.exit);
    }

    /// Returns the effect of an acknowledgement in slow start, at window `cwnd` of segments of
    /// `mss`.
    pub fn on_ack(&mut self, acked: &AckEffect, cwnd: u64, mss: u64) -> Growth {
        if self.exit == SlowStartExit::Never {
            return Growth::Bytes(acked.bytes);
        }
        if let Some(rtt) = acked.rtt {
            self.path_min = Some(self.path_min.map_or(rtt, |min| min.min(rtt)));
        }
        // The acknowledgement that begins a round trip still counts for the train before it.
        let is_long =
            self.exit == SlowStartExit::AckTrain && self.is_train_long(acked.now, cwnd, mss);
        let is_new_round = acked.una > self.round_end;
        if is_new_round && let Some((rounds, _)) = &mut self.conservative {
            *rounds += 1;
            if *rounds > ROUNDS {
                return Growth::End;
            }
        }
        if is_new_round {
            (self.last_min, self.current_min, self.samples) = (self.current_min, None, 0);
            (self.round_end, self.round_start) = (acked.next, acked.now);
            self.last_ack = acked.now;
        }
        if let Some(rtt) = acked.rtt {
            self.current_min = Some(self.current_min.map_or(rtt, |min| min.min(rtt)));
            self.samples += 1;
        }
        if self.exit == SlowStartExit::HystartPp {
            self.check_delay(acked)
        } else if is_long {
            Growth::End
        } else {
            Growth::Bytes(acked.bytes)
        }
    }

    fn is_train_long(&mut self, now: Time, cwnd: u64, mss: u64) -> bool {
        if cwnd < TRAIN_WINDOW_MIN * mss || now.saturating_since(self.last_ack) > TRAIN_GAP_MAX {
            return false;
        }
        self.last_ack = now;
        let length = now.saturating_since(self.round_start);
        self.path_min.is_some_and(|min| length > min)
    }

    /// RFC 9406 §4.2. The RFC's bounds of an eighth of the round trip, 4 and 16 ms, are for the
    /// Internet; here an eighth counts as it is.
    fn check_delay(&mut self, acked: &AckEffect) -> Growth {
        let (Some(last), Some(current)) = (self.last_min, self.current_min) else {
            return Growth::Bytes(acked.bytes);
        };
        match self.conservative {
            Some((_, baseline)) => {
                if self.samples >= SAMPLES_MIN && current < baseline {
                    self.conservative = None;
                }
            }
            None => {
                if self.samples >= SAMPLES_MIN && current >= last + last / 8 {
                    self.conservative = Some((0, current));
                }
            }
        }
        let divisor = if self.conservative.is_some() { GROWTH_DIVISOR } else { 1 };
        Growth::Bytes(acked.bytes / divisor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten acknowledgements at once are no long train. The next arrives a round trip later, which
    /// is longer than the shortest.
    #[test]
    fn the_first_acknowledgement_of_a_round_trip_ends_the_train_before_it() {
        let (mut hystart, mut cwnd) = (HyStart::new(SlowStartExit::AckTrain), 10);
        let mut ack = |una: u64, us: u64| {
            let acked = AckEffect {
                now: Time::ZERO + Span::from_us(us),
                bytes: 1,
                una,
                next: una + cwnd,
                rtt: Some(Span::from_us(50)),
                smoothed: None,
                is_marked: false,
                is_limited: true,
                in_recovery: false,
            };
            let growth = hystart.on_ack(&acked, cwnd, 1);
            cwnd += 1;
            growth
        };
        for una in 1..=10 {
            assert_eq!(ack(una, 100), Growth::Bytes(1), "{una}");
        }
        assert_eq!(ack(12, 160), Growth::End);
    }
}
