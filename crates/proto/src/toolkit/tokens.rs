//! Tokens of a flow at its receiver: the next packet to request, and the number of open tokens.
//!
//! Tokens are numbered. Data names the token that it answers. So the highest number seen gives the
//! number of later tokens that are unanswered, regardless of losses in between.

use rampmeter_types::Time;
use rampmeter_types::collections::SeqSet;

/// A token that a receiver sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IssuedToken {
    /// The packet that it requests.
    pub seq: u32,
    /// Its number among the tokens of the flow.
    pub number: u32,
}

/// The tokens of one flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenCursor {
    /// The sequence number at which the search for the next packet begins.
    next: u32,
    /// One more than the highest sequence number that has had a token or is sent without.
    tokened_end: u32,
    issued: u32,
    /// One more than the number of the latest token whose data has arrived.
    answered_end: u32,
    /// Time at which the latest token was issued.
    last: Time,
}

impl TokenCursor {
    /// No token yet. The sender sends the first `free` packets without; they count as tokens issued
    /// now.
    pub fn new(now: Time, free: u32) -> Self {
        Self { next: free, tokened_end: free, issued: free, answered_end: 0, last: now }
    }

    /// Returns the tokens issued so far.
    pub fn issued(&self) -> u32 {
        self.issued
    }

    /// Returns the time at which the latest token was issued.
    pub fn last(&self) -> Time {
        self.last
    }

    /// Returns the tokens issued after the latest whose data has arrived.
    pub fn open(&self) -> u32 {
        self.issued - self.answered_end
    }

    /// Returns the start of the search for the next packet.
    pub fn next(&self) -> u32 {
        self.next
    }

    /// Handles the data of token `number`.
    pub fn on_data(&mut self, number: u32) {
        self.answer_below(number.saturating_add(1));
    }

    /// Returns the number below which all tokens have been answered or abandoned.
    pub fn seen(&self) -> u32 {
        self.answered_end
    }

    /// Counts the tokens below `number` as answered.
    pub fn answer_below(&mut self, number: u32) {
        self.answered_end = self.answered_end.max(number.min(self.issued));
    }

    /// Counts old tokens as answered, so that one less than `limit` is open.
    pub fn reopen(&mut self, limit: u32) {
        self.answered_end = (self.issued + 1).saturating_sub(limit).min(self.issued);
    }

    /// Begins the search at the first missing packet.
    pub fn rewind(&mut self, got: &SeqSet) {
        self.next = got.first_missing();
    }

    /// Returns the first packet missing from `from` on, or else from the start.
    pub fn missing(got: &SeqSet, packets: u32, from: u32) -> u32 {
        let next = got.next_missing(from);
        if next < packets { next } else { got.first_missing() }
    }

    /// Issues a token that requests a packet outside the order. Returns the token's number.
    pub fn issue(&mut self, now: Time) -> u32 {
        self.last = now;
        self.issued += 1;
        self.issued - 1
    }

    /// Moves past the next missing packet in cyclic order. Returns it, and true if it was requested
    /// before.
    pub fn advance(&mut self, got: &SeqSet, packets: u32) -> (u32, bool) {
        let seq = Self::missing(got, packets, self.next);
        let is_again = seq < self.tokened_end;
        self.next = seq + 1;
        self.tokened_end = self.tokened_end.max(self.next);
        (seq, is_again)
    }
}
