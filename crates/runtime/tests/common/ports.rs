//! Ports for the nodes of tests.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::process;
use std::sync::atomic::{AtomicU16, Ordering};

/// First port. Linux does not assign these ports automatically: a free port stays free until its
/// node opens it.
const FIRST: u16 = 12_000;
const PAIRS: u16 = 10_000;

/// Returns pairs of neighbouring unused ports, no pair twice; the first of each.
///
/// # Panics
/// All ports are used.
pub(crate) fn addresses(ip: IpAddr, n: usize) -> Vec<SocketAddr> {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Processes that test at the same time begin far from one another.
    let start = (process::id().wrapping_mul(7_919) % u32::from(PAIRS)) as u16;
    let mut found = Vec::new();
    while found.len() < n {
        let tried = NEXT.fetch_add(1, Ordering::Relaxed);
        assert!(tried < PAIRS, "no free ports");
        let port = FIRST + 2 * ((start + tried) % PAIRS);
        if [port, port + 1].iter().all(|port| UdpSocket::bind((ip, *port)).is_ok()) {
            found.push(SocketAddr::new(ip, port));
        }
    }
    found
}
