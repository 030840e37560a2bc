//! dcPIM's packets (§3.1, §3.2) and their encoding.
//!
//! A header starts with a type byte; integers are big-endian. The message that a packet is about
//! is named by its [`PayloadRef`](rampmeter_core::PayloadRef), which every driver carries beside
//! the header, so headers hold only what dcPIM adds. `docs/protocols/dcpim.md` has the table of
//! formats. To add a type: the enum, `code`, `wire_len`, `encode`, `decode`, that table, and the
//! strategy in `tests.rs`.

use rampmeter_core::wire::{Reader, Writer};
use rampmeter_core::{Header, WireError};

/// The step of a matching round that a message belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Receiver to sender: I want channels.
    Request,
    /// Sender to receiver: you may have channels.
    Grant,
    /// Receiver to sender: I take channels.
    Accept,
    /// Sender to receiver: I cannot serve these channels after all.
    Release,
}

/// A message of the matching phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Match {
    /// Which step it is.
    pub step: Step,
    /// Channels asked for, granted, accepted or released; never zero.
    pub channels: u8,
    /// How many of them may start before their data phase.
    pub prompt: u8,
    /// The round, from zero.
    pub round: u8,
    /// The matching phase, from zero.
    pub phase: u32,
    /// Packets that remain of the pair's smallest flow.
    pub remaining: u32,
    /// When that flow was announced, in picoseconds of the receiver's clock: the tie-break.
    pub announced: u64,
}

/// A dcPIM header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DcpimHeader {
    /// Sender to receiver: a flow exists.
    Notification {
        /// The flow's number among those of this pair.
        flow: u32,
        /// Its slot at the sender.
        tx_slot: u32,
        /// Its size in bytes.
        size: u64,
        /// True if the sender asks for an answer because it has heard nothing.
        repeated: bool,
    },
    /// Receiver to sender: the notification is here.
    Ack {
        /// The flow's slot at the sender.
        tx_slot: u32,
    },
    /// Sender to receiver: one packet of a short flow, sent without a token. It says all that the
    /// notification says, in case that is lost.
    Unscheduled {
        /// The flow.
        flow: u32,
        /// Its slot at the sender.
        tx_slot: u32,
        /// The packet's number in the flow.
        seq: u32,
        /// The flow's size in bytes.
        size: u64,
    },
    /// Sender to receiver: one packet that a token asked for.
    Data {
        /// The flow's slot at the receiver, from the token.
        rx_slot: u32,
        /// The packet's number in the flow.
        seq: u32,
        /// The token's number.
        number: u32,
    },
    /// Receiver to sender: send one packet.
    ///
    /// The fields stand here, not in a type of their own, so that the tag fits beside them and a
    /// header into 32 bytes.
    Token {
        /// The flow's slot at the sender.
        tx_slot: u32,
        /// Its slot at the receiver.
        rx_slot: u32,
        /// The packet to send.
        seq: u32,
        /// How many tokens the flow had before.
        number: u32,
        /// Every packet below has arrived.
        cumulative: u32,
        /// The phase after which the token is void.
        phase: u32,
        /// Packets of the flow that have not arrived.
        remaining: u32,
        /// Its rank, lower first: 2 and up for matched sources, 7 for prompt channels.
        rank: u8,
    },
    /// A step of the matching.
    Match(Match),
    /// Sender to receiver: every packet of the flow has been sent.
    Finish {
        /// The flow.
        flow: u32,
        /// Its slot at the sender.
        tx_slot: u32,
        /// Its packets.
        packets: u32,
    },
    /// Receiver to sender: every packet of the flow is here.
    Finished {
        /// The flow's slot at the sender.
        tx_slot: u32,
    },
}

impl DcpimHeader {
    const fn code(&self) -> u8 {
        match self {
            Self::Notification { .. } => 1,
            Self::Ack { .. } => 2,
            Self::Data { .. } => 3,
            Self::Unscheduled { .. } => 11,
            Self::Token { .. } => 4,
            Self::Finish { .. } => 5,
            Self::Finished { .. } => 6,
            Self::Match(m) => match m.step {
                Step::Request => 7,
                Step::Grant => 8,
                Step::Accept => 9,
                Step::Release => 10,
            },
        }
    }
}

impl Header for DcpimHeader {
    fn wire_len(&self) -> usize {
        match self {
            Self::Notification { .. } => 18,
            Self::Ack { .. } | Self::Finished { .. } => 5,
            Self::Finish { .. } | Self::Data { .. } => 13,
            Self::Unscheduled { .. } => 21,
            Self::Token { .. } => 30,
            Self::Match(_) => 20,
        }
    }

    fn encode(&self, out: &mut [u8]) -> Result<usize, WireError> {
        let mut w = Writer::new(out);
        w.u8(self.code())?;
        match *self {
            Self::Notification { flow, tx_slot, size, repeated } => {
                w.u32(flow)?.u32(tx_slot)?.u64(size)?.u8(u8::from(repeated))?;
            }
            Self::Ack { tx_slot } | Self::Finished { tx_slot } => {
                w.u32(tx_slot)?;
            }
            Self::Unscheduled { flow, tx_slot, seq, size } => {
                w.u32(flow)?.u32(tx_slot)?.u32(seq)?.u64(size)?;
            }
            Self::Data { rx_slot, seq, number } => {
                w.u32(rx_slot)?.u32(seq)?.u32(number)?;
            }
            Self::Token { tx_slot, rx_slot, seq, number, cumulative, phase, remaining, rank } => {
                w.u32(tx_slot)?.u32(rx_slot)?.u32(seq)?.u32(number)?;
                w.u32(cumulative)?.u32(phase)?.u32(remaining)?.u8(rank)?;
            }
            Self::Match(m) => {
                w.u8(m.channels)?.u8(m.prompt)?.u8(m.round)?;
                w.u32(m.phase)?.u32(m.remaining)?.u64(m.announced)?;
            }
            Self::Finish { flow, tx_slot, packets } => {
                w.u32(flow)?.u32(tx_slot)?.u32(packets)?;
            }
        }
        Ok(w.written())
    }

    fn decode(bytes: &[u8]) -> Result<(Self, usize), WireError> {
        let mut r = Reader::new(bytes);
        let header = match r.u8()? {
            1 => {
                let (flow, tx_slot, size) = (r.u32()?, r.u32()?, r.u64()?);
                let repeated = match r.u8()? {
                    0 => false,
                    1 => true,
                    got => return Err(bad("repeated", "0 or 1", u64::from(got))),
                };
                if size == 0 {
                    return Err(bad("size", "at least 1", 0));
                }
                Self::Notification { flow, tx_slot, size, repeated }
            }
            2 => Self::Ack { tx_slot: r.u32()? },
            3 => Self::Data { rx_slot: r.u32()?, seq: r.u32()?, number: r.u32()? },
            4 => Self::Token {
                tx_slot: r.u32()?,
                rx_slot: r.u32()?,
                seq: r.u32()?,
                number: r.u32()?,
                cumulative: r.u32()?,
                phase: r.u32()?,
                remaining: r.u32()?,
                rank: r.u8()?,
            },
            5 => Self::Finish { flow: r.u32()?, tx_slot: r.u32()?, packets: r.u32()? },
            6 => Self::Finished { tx_slot: r.u32()? },
            7 => decode_match(Step::Request, &mut r)?,
            8 => decode_match(Step::Grant, &mut r)?,
            9 => decode_match(Step::Accept, &mut r)?,
            10 => decode_match(Step::Release, &mut r)?,
            11 => {
                let (flow, tx_slot, seq, size) = (r.u32()?, r.u32()?, r.u32()?, r.u64()?);
                if size == 0 {
                    return Err(bad("size", "at least 1", 0));
                }
                Self::Unscheduled { flow, tx_slot, seq, size }
            }
            other => return Err(WireError::UnknownType(other)),
        };
        Ok((header, r.consumed()))
    }
}

fn decode_match(step: Step, r: &mut Reader<'_>) -> Result<DcpimHeader, WireError> {
    let (channels, prompt, round, phase) = (r.u8()?, r.u8()?, r.u8()?, r.u32()?);
    if channels == 0 {
        return Err(bad("channels", "at least 1", 0));
    }
    if prompt > channels {
        return Err(bad("prompt", "at most channels", u64::from(prompt)));
    }
    let (remaining, announced) = (r.u32()?, r.u64()?);
    let fields = Match { step, channels, prompt, round, phase, remaining, announced };
    Ok(DcpimHeader::Match(fields))
}

fn bad(field: &'static str, expected: &'static str, got: u64) -> WireError {
    WireError::BadField { field, expected, got }
}
