//! Messages with a label, for tests in which bytes are really sent.

use rampmeter_types::Rng;
use rampmeter_types::rng::mix;

/// Bytes of the label of a message.
pub const LABEL: usize = 16;

/// Returns a message with a label of its sender, incarnation and number. Its other bytes follow
/// from these. At least [`LABEL`] bytes.
pub fn message(src: u32, incarnation: u32, number: u64, size: usize) -> Vec<u8> {
    assert!(size >= LABEL, "{size} bytes hold no label");
    let mut bytes = Vec::with_capacity(size + 8);
    bytes.extend(src.to_be_bytes());
    bytes.extend(incarnation.to_be_bytes());
    bytes.extend(number.to_be_bytes());
    let mut word = number ^ u64::from(incarnation) << 32 ^ u64::from(src);
    while bytes.len() < size {
        word = mix(word.wrapping_add(0x9e37_79b9_7f4a_7c15));
        bytes.extend(word.to_be_bytes());
    }
    bytes.truncate(size);
    bytes
}

/// Returns the label of a message: node, incarnation and number. Panics if a byte of it was
/// altered.
pub fn read_message(bytes: &[u8]) -> (u32, u32, u64) {
    let word = |at: usize| bytes[at..].first_chunk().map(|word| u32::from_be_bytes(*word));
    let label = [word(0), word(4), word(8), word(12)].map(|word| word.expect("a label"));
    let [src, incarnation, high, low] = label;
    let number = u64::from(high) << 32 | u64::from(low);
    assert!(
        bytes == message(src, incarnation, number, bytes.len()),
        "message {number} of node {src} was altered"
    );
    (src, incarnation, number)
}

/// Sizes of a mixed load: most are a packet or two, some are long.
pub fn mixed_size(rng: &mut Rng) -> usize {
    match rng.uniform_below(10) {
        0..6 => LABEL + rng.uniform_below(2_000),
        6..9 => LABEL + rng.uniform_below(20_000),
        _ => LABEL + rng.uniform_below(200_000),
    }
}
