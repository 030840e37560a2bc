//! Cost of the datapaths: packets a second and round trips over virtual Ethernet. The baselines are
//! loops that only call the same library or the same system calls.
//!
//! As root: `cargo run --release -p rampmeter-host-bench --bin xdp_rate [ROUNDS
//! [MS]]`. Each round measures each of them for MS milliseconds, so that other load on the machine
//! affects all alike. Printed rates are those of the best 10 % of rounds and medians. Ratios are
//! those of rates in the best 10 % of rounds, medians of the rounds' ratios, and ratios of the
//! sender's processor time per packet.

#![allow(clippy::print_stdout, reason = "it reports")]

mod bare;
#[path = "../../../../../crates/runtime/tests/common/netns.rs"]
mod netns;

use std::io;
use std::net::{SocketAddr, SocketAddrV4};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use bare::{BareUdp, BareXdp};
use netns::{DEVICE, Net};
use rampmeter_runtime::datapath::udp::{UdpConfig, UdpDatapath};
use rampmeter_runtime::datapath::xdp::{XdpConfig, XdpDatapath};
use rampmeter_runtime::datapath::{Datapath, Rail, Route};
use rampmeter_runtime::{Clock, ClockSource};
use rampmeter_types::packet::Marks;
use rampmeter_types::{NodeId, Priority, Span, Time};
use rustix::thread::{CpuSet, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

/// Packets that are sent together.
const BATCH: usize = 64;
/// Datagrams of a 1500-byte packet and of a 64-byte frame.
const LONG: usize = 1_472;
const SHORT: usize = 22;
const PORT: u16 = 7_321;

/// One end of a measured datapath.
trait End: Send {
    /// Sends a datagram of `len` bytes that begins with `stamp`.
    fn send(&mut self, len: usize, stamp: u64) -> io::Result<()>;
    fn flush(&mut self) -> io::Result<()>;
    /// Returns the number of datagrams that have arrived, and the stamp of the last of them.
    fn receive(&mut self, now: Time) -> io::Result<(usize, u64)>;
}

/// A datapath through its trait.
struct Ours<D> {
    datapath: D,
    dst: NodeId,
    paths: u16,
    path: u16,
}

impl<D: Datapath + Send> End for Ours<D> {
    fn send(&mut self, len: usize, stamp: u64) -> io::Result<()> {
        self.path = self.path.wrapping_add(1) % self.paths;
        let (class, marks) = (Priority::new(1), Marks::NONE);
        let route = Route { dst: self.dst, class, path: self.path, rail: Rail::Any, marks };
        self.datapath.send(route, |out| {
            out[..8].copy_from_slice(&stamp.to_ne_bytes());
            len
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.datapath.flush()
    }

    fn receive(&mut self, now: Time) -> io::Result<(usize, u64)> {
        let mut stamp = 0;
        let n = self.datapath.receive(now, |arrived| stamp = bare::stamp(arrived.bytes))?;
        Ok((n, stamp))
    }
}

/// Subject of a measurement, and its results.
struct Subject {
    name: &'static str,
    ends: [Box<dyn End>; 2],
    rates: Vec<f64>,
    /// Packets sent per second of the sending thread's processor time.
    efforts: Vec<f64>,
    sent: u64,
    received: u64,
    trips: Vec<u64>,
    medians: Vec<f64>,
}

impl Subject {
    fn new<E: End + 'static>(
        name: &'static str,
        net: &Net,
        open: impl Fn(usize) -> E + Sync,
    ) -> Self {
        let end = |host: usize| -> Box<dyn End> { Box::new(net.hosts[host].within(|| open(host))) };
        let ends = [end(0), end(1)];
        let [rates, efforts, medians] = [const { Vec::new() }; 3];
        Self { name, ends, rates, efforts, sent: 0, received: 0, trips: Vec::new(), medians }
    }

    /// Sends long packets one way for `span`.
    fn measure_rate(&mut self, clock: &Clock, span: Span) -> io::Result<()> {
        let [a, b] = &mut self.ends;
        let (is_over, received) = (AtomicBool::new(false), AtomicU64::new(0));
        let (sent, seconds, busy) = thread::scope(|scope| -> io::Result<(u64, f64, f64)> {
            let receiver = scope.spawn(|| -> io::Result<()> {
                pin(1);
                while !is_over.load(Ordering::Relaxed) {
                    let (n, _) = b.receive(clock.now())?;
                    received.fetch_add(n as u64, Ordering::Relaxed);
                }
                while b.receive(clock.now())?.0 > 0 {}
                Ok(())
            });
            pin(0);
            let (start, mut sent, busy) = (clock.now(), 0, thread_seconds());
            while clock.now().saturating_since(start) < span {
                for _ in 0..BATCH {
                    a.send(LONG, sent)?;
                    sent += 1;
                }
                a.flush()?;
            }
            let seconds = clock.now().saturating_since(start).as_ps() as f64 * 1e-12;
            is_over.store(true, Ordering::Relaxed);
            let busy = thread_seconds() - busy;
            receiver.join().expect("the receiver has not panicked")?;
            Ok((sent, seconds, busy))
        })?;
        let received = received.into_inner();
        self.rates.push(received as f64 / seconds);
        self.efforts.push(sent as f64 / busy);
        (self.sent, self.received) = (self.sent + sent, self.received + received);
        Ok(())
    }

    /// Sends short packets back and forth, one at a time, for `span`.
    fn measure_trips(&mut self, clock: &Clock, span: Span) -> io::Result<()> {
        let [a, b] = &mut self.ends;
        let is_over = AtomicBool::new(false);
        let mut trips = thread::scope(|scope| -> io::Result<Vec<u64>> {
            let echo = scope.spawn(|| -> io::Result<()> {
                pin(1);
                while !is_over.load(Ordering::Relaxed) {
                    if let (1.., stamp) = b.receive(clock.now())? {
                        b.send(SHORT, stamp)?;
                        b.flush()?;
                    }
                }
                Ok(())
            });
            pin(0);
            let (start, mut trips) = (clock.now(), Vec::new());
            while clock.now().saturating_since(start) < span {
                let left = clock.now();
                a.send(SHORT, left.as_ps())?;
                a.flush()?;
                // A lost packet is abandoned after 100 ms.
                while clock.now().saturating_since(left) < Span::from_us(100_000) {
                    if let (1.., stamp) = a.receive(clock.now())?
                        && stamp == left.as_ps()
                    {
                        trips.push(clock.now().saturating_since(left).as_ps());
                        break;
                    }
                }
            }
            is_over.store(true, Ordering::Relaxed);
            echo.join().expect("the echo has not panicked")?;
            Ok(trips)
        })?;
        self.medians.push(quantile(&mut trips, 0.5));
        self.trips.append(&mut trips);
        Ok(())
    }

    fn report(&mut self) {
        let [p50, p99, p999] = [0.5, 0.99, 0.999].map(|q| quantile(&mut self.trips, q) * 1e-6);
        let (best, rate) = (best(&self.rates), median(&self.rates));
        let lost = (1.0 - self.received as f64 / self.sent as f64) * 100.0;
        let (name, gbps) = (self.name, best * 1_500.0 * 8e-9);
        println!(
            "{name:<14}{best:>9.0} packets/s {gbps:5.2} Gbit/s, median {rate:>7.0}, \
             {lost:5.2} % lost; RTT {p50:5.2} {p99:5.2} {p999:6.2} us"
        );
    }
}

/// Returns the processor time of this thread.
fn thread_seconds() -> f64 {
    let at = clock_gettime(ClockId::ThreadCPUTime);
    at.tv_sec as f64 + at.tv_nsec as f64 * 1e-9
}

fn pin(cpu: usize) {
    let mut set = CpuSet::new();
    set.set(cpu);
    // On a machine with one processor, both share it.
    let _ = sched_setaffinity(None, &set);
}

fn quantile(values: &mut [u64], q: f64) -> f64 {
    values.sort_unstable();
    let idx = (values.len().saturating_sub(1) as f64 * q) as usize;
    values.get(idx).map_or(f64::NAN, |&v| v as f64)
}

fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Returns the 90th percentile.
fn best(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values.get(values.len() * 9 / 10).copied().unwrap_or(f64::NAN)
}

/// Compares the second with the first; more is better.
fn compare(bare: &Subject, ours: &Subject) {
    let ratio = |a: &[f64], b: &[f64]| {
        let ratios: Vec<f64> = a.iter().zip(b).map(|(a, b)| a / b).collect();
        median(&ratios)
    };
    let inverse = |values: &[f64]| values.iter().map(|v| 1.0 / v).collect::<Vec<_>>();
    let (bare_trips, our_trips) = (inverse(&bare.medians), inverse(&ours.medians));
    println!(
        "{:<14} / {:<13} packets {:.3} median {:.3} effort {:.3}; RTT {:.3} median {:.3}",
        ours.name,
        bare.name,
        best(&ours.rates) / best(&bare.rates),
        ratio(&ours.rates, &bare.rates),
        ratio(&ours.efforts, &bare.efforts),
        best(&our_trips) / best(&bare_trips),
        ratio(&our_trips, &bare_trips),
    );
}

fn open_udp(net: &Net, port: u16, host: usize, paths: u16) -> Ours<UdpDatapath> {
    let address = |ip| SocketAddr::from((ip, port));
    let peers = net.hosts.iter().map(|host| Some(address(host.ip))).collect();
    let config = UdpConfig::new(address(net.hosts[host].ip), peers);
    let datapath = UdpDatapath::open(&config).expect("the ports are free");
    Ours { datapath, dst: NodeId::new(1 - host as u32), paths, path: 0 }
}

fn open_xdp(net: &Net, host: usize) -> Ours<XdpDatapath> {
    let address = |ip| SocketAddrV4::new(ip, PORT);
    let peers = net.hosts.iter().map(|host| Some(address(host.ip))).collect();
    let config = XdpConfig::new(DEVICE, address(net.hosts[host].ip), peers);
    let datapath = XdpDatapath::open(&config).unwrap_or_else(|error| panic!("{error}"));
    Ours { datapath, dst: NodeId::new(1 - host as u32), paths: 16, path: 0 }
}

fn main() -> io::Result<()> {
    let mut args = std::env::args().skip(1).map(|arg| arg.parse::<u64>());
    let mut number =
        |or| args.next().transpose().map(|n| n.unwrap_or(or)).map_err(io::Error::other);
    let (rounds, ms) = (number(60)?, number(40)?);
    let nets = [Net::pair(), Net::pair(), Net::pair()];
    let [Some(bare_net), Some(xdp_net), Some(udp_net)] = &nets else { return Ok(()) };
    let other = |net: &Net, host: usize| net.hosts[1 - host].ip;
    let mut subjects = [
        Subject::new("bare AF_XDP", bare_net, |host| {
            BareXdp::open(bare_net.hosts[host].ip, other(bare_net, host)).expect("it opens")
        }),
        Subject::new("XdpDatapath", xdp_net, |host| open_xdp(xdp_net, host)),
        Subject::new("bare UDP", udp_net, |host| {
            BareUdp::open(udp_net.hosts[host].ip, other(udp_net, host)).expect("it opens")
        }),
        Subject::new("UdpDatapath/1", udp_net, |host| open_udp(udp_net, 6_000, host, 1)),
        Subject::new("UdpDatapath/16", udp_net, |host| open_udp(udp_net, 6_100, host, 16)),
    ];
    let clock = Clock::start(ClockSource::default()).map_err(io::Error::other)?;
    let span = Span::from_us(ms * 1_000);
    for _ in 0..rounds {
        subjects.iter_mut().try_for_each(|subject| subject.measure_rate(&clock, span))?;
        subjects.iter_mut().try_for_each(|subject| subject.measure_trips(&clock, span))?;
    }
    subjects.iter_mut().for_each(Subject::report);
    for (bare, ours) in [(0, 1), (2, 3), (2, 4), (3, 1)] {
        compare(&subjects[bare], &subjects[ours]);
    }
    Ok(())
}
