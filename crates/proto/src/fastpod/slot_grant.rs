//! Grants of an arbiter for one slot.

/// One end of the pod sends to another in a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SlotGrant {
    pub(super) src: u16,
    pub(super) dst: u16,
    /// Receiver as named to the sender: a host, or a pod with [`super::wire::POD_FLAG`].
    pub(super) to: u16,
    /// The aggregation switch between them; to another pod the core switch.
    pub(super) agg: u8,
    /// The slot is for a probe of a link that is broken.
    pub(super) is_probe: bool,
}
