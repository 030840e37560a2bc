//! Messages that are arriving.

use rampmeter_core::collections::IdMap;
use rampmeter_core::{MsgId, NodeId};

use crate::wire::Fragment;

/// A message of which some bytes are here.
#[derive(Debug)]
pub(crate) struct Arriving<A> {
    pub(crate) service: u16,
    pub(crate) size: u32,
    /// Bytes that have arrived.
    pub(crate) got: u64,
    pub(crate) assembly: A,
}

/// What the inbox knows of a fragment's message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Nothing of it is here.
    New,
    /// It is arriving, and the fragment agrees with what came before.
    Arriving,
    /// The fragment contradicts what came before.
    Contradicts,
}

/// The messages that are arriving, by sender and its number.
#[derive(Debug)]
pub(crate) struct Inbox<A>(IdMap<(NodeId, MsgId), Arriving<A>>);

impl<A> Inbox<A> {
    pub(crate) fn new() -> Self {
        Self(IdMap::default())
    }

    pub(crate) fn find(&self, src: NodeId, msg: MsgId, fragment: &Fragment) -> Found {
        match self.0.get(&(src, msg)) {
            None => Found::New,
            Some(m) if m.size == fragment.size && m.service == fragment.service => Found::Arriving,
            Some(_) => Found::Contradicts,
        }
    }

    /// The message, made by `open` if this is the first of it.
    pub(crate) fn entry(
        &mut self,
        src: NodeId,
        msg: MsgId,
        fragment: &Fragment,
        open: impl FnOnce() -> A,
    ) -> &mut Arriving<A> {
        let Fragment { service, size, .. } = *fragment;
        self.0.entry((src, msg)).or_insert_with(|| {
            let assembly = open();
            Arriving { service, size, got: 0, assembly }
        })
    }

    pub(crate) fn take(&mut self, src: NodeId, msg: MsgId) -> Option<Arriving<A>> {
        self.0.remove(&(src, msg))
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}
