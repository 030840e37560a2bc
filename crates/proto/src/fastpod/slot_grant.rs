//! Grants of an arbiter for one slot.

/// One end of the pod sends to another in a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlotGrant {
    pub(crate) src: u16,
    pub(crate) dst: u16,
    /// Receiver as named to the sender: a host, or a pod with [`crate::fastpod::wire::POD_FLAG`].
    pub(crate) named_dst: u16,
    /// The aggregation switch between them; to another pod the core switch.
    pub(crate) agg: u8,
    /// The slot is for a probe of a link that is broken.
    pub(crate) is_probe: bool,
}
