//! Cost of the digest of messages per full packet, at the sender and at the receiver. The sender
//! has just copied the bytes. The receiver gets packets in order, or packets of which none follows
//! the one before.

use std::cell::Cell;
use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use rampmeter_runtime::digest::{ReceiveDigest, count_out, digest_to_be};
use rampmeter_runtime::wire::{Envelope, Fragment};

const PAYLOAD: u32 = 1_400;
const PACKETS: u32 = 700;
const SIZE: u32 = PACKETS * PAYLOAD;

fn fragment(packet: u32) -> Fragment {
    Fragment { service: 7, offset: packet * PAYLOAD, size: SIZE, digest: None }
}

/// Calls `each` with one packet after another, of message after message.
fn packets(c: &mut Criterion, name: &str, mut each: impl FnMut(u32)) {
    let mut packet = 0;
    c.bench_function(&format!("digest/{name}"), |b| {
        b.iter(|| {
            each(packet);
            packet = (packet + 1) % PACKETS;
        });
    });
}

fn digest(c: &mut Criterion) {
    let mut datagram = vec![3; Envelope::LEN_MAX + 19 + PAYLOAD as usize];
    let message = vec![3; SIZE as usize];
    let leaving = Cell::default();
    packets(c, "leaving", |packet| {
        if packet == 0 {
            leaving.take();
        }
        let digest = digest_to_be(&leaving, packet * PAYLOAD, PAYLOAD, SIZE);
        let fragment = Fragment { digest, ..fragment(packet) };
        count_out(&leaving, &message, &fragment, PAYLOAD as usize, black_box(&mut datagram));
    });
    let payload = &datagram[Envelope::LEN_MAX + 19..];
    let mut arriving = ReceiveDigest::default();
    packets(c, "arriving-in-order", |packet| {
        arriving = black_box(arriving.with(&fragment(packet), black_box(payload)));
    });
    packets(c, "arriving-out-of-order", |packet| {
        // Neighbours are swapped.
        arriving = black_box(arriving.with(&fragment(packet ^ 1), black_box(payload)));
    });
    packets(c, "arriving-anyhow", |packet| {
        // 37 has no factor in common with 700: every packet ends a run.
        let place = packet * 37 % PACKETS;
        arriving = black_box(arriving.with(&fragment(place), black_box(payload)));
    });
    c.bench_function("digest/copy-alone", |b| {
        let mut to = vec![0; PAYLOAD as usize];
        b.iter(|| black_box(&mut to).copy_from_slice(black_box(payload)));
    });
}

criterion_group!(benches, digest);
criterion_main!(benches);
