//! TCP at the level of packets.
