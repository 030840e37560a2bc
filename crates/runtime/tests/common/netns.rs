//! Networks of Linux network namespaces, for root: created with `ip`, and removed when they are
//! dropped.

#![allow(clippy::print_stdout, reason = "tests that are skipped say why")]
#![allow(dead_code, reason = "each test program uses a part")]

use std::fs::File;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// Hosts, each in a separate namespace with an interface [`DEVICE`].
pub(crate) struct Net {
    hub: Option<String>,
    pub(crate) hosts: Vec<Host>,
}

/// One host.
#[derive(Clone)]
pub(crate) struct Host {
    /// The namespace.
    pub(crate) name: String,
    pub(crate) ip: Ipv4Addr,
}

/// The interface of every host.
pub(crate) const DEVICE: &str = "eth0";

impl Net {
    /// Creates two hosts at the ends of a virtual cable. `None`, with a printed reason, if that is
    /// impossible.
    pub(crate) fn pair() -> Option<Self> {
        Self::pair_with_queues(1)
    }

    /// Creates such hosts whose interfaces have `n` queues in each direction.
    pub(crate) fn pair_with_queues(n: u32) -> Option<Self> {
        let net = Self::hosts(2, |host| Ipv4Addr::new(10, 77, 0, host + 1))?;
        let [a, b] = [0, 1].map(|host| net.hosts[host].name.clone());
        let queues = format!("numtxqueues {n} numrxqueues {n}");
        net.ip(&format!(
            "link add {DEVICE} netns {a} {queues} type veth peer name {DEVICE} netns {b} {queues}"
        ));
        (0..2).for_each(|host| net.up(host));
        Some(net)
    }

    /// Creates hosts at a switch.
    pub(crate) fn switched(n: u8) -> Option<Self> {
        let mut net = Self::hosts(n, |host| Ipv4Addr::new(10, 77, 0, host + 1))?;
        let hub = net.add_hub();
        net.ip(&format!("-n {hub} link add br0 type bridge"));
        net.ip(&format!("-n {hub} link set br0 up"));
        for host in 0..n {
            net.connect(host.into());
            net.ip(&format!("-n {hub} link set port{host} master br0"));
        }
        Some(net)
    }

    /// Creates hosts at a router, each in a separate network.
    pub(crate) fn routed(n: u8) -> Option<Self> {
        let mut net = Self::hosts(n, |host| Ipv4Addr::new(10, 77, host, 2))?;
        let hub = net.add_hub();
        for host in 0..n {
            net.connect(host.into());
            net.ip(&format!("-n {hub} addr add 10.77.{host}.1/24 dev port{host}"));
            let name = &net.hosts[usize::from(host)].name;
            net.ip(&format!("-n {name} route add default via 10.77.{host}.1"));
        }
        within(&hub, || std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").unwrap());
        Some(net)
    }

    fn hosts(n: u8, address: impl Fn(u8) -> Ipv4Addr) -> Option<Self> {
        let mut net = Self { hub: None, hosts: Vec::new() };
        if !rustix::process::geteuid().is_root() {
            return skipped("only root can make network namespaces");
        }
        for host in 0..n {
            let name = name();
            if let Err(why) = ip(&format!("netns add {name}")) {
                return skipped(&format!("no network namespaces here: {why}"));
            }
            net.hosts.push(Host { name, ip: address(host) });
        }
        Some(net)
    }

    fn add_hub(&mut self) -> String {
        let hub = name();
        self.ip(&format!("netns add {hub}"));
        self.hub.insert(hub).clone()
    }

    /// Connects a host to the hub by a cable.
    fn connect(&mut self, host: usize) {
        let (name, hub) = (&self.hosts[host].name, self.hub.as_ref().unwrap());
        self.ip(&format!(
            "link add {DEVICE} netns {name} type veth peer name port{host} netns {hub}"
        ));
        self.ip(&format!("-n {hub} link set port{host} up"));
        self.up(host);
    }

    fn up(&self, host: usize) {
        let Host { name, ip } = &self.hosts[host];
        self.ip(&format!("-n {name} addr add {ip}/24 dev {DEVICE}"));
        self.ip(&format!("-n {name} link set {DEVICE} up"));
        self.ip(&format!("-n {name} link set lo up"));
    }

    /// Runs `ip` with these arguments, and returns its output.
    pub(crate) fn ip(&self, args: &str) -> String {
        ip(args).unwrap_or_else(|why| panic!("ip {args}: {why}"))
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        for name in self.hosts.iter().map(|host| &host.name).chain(&self.hub) {
            let _ = ip(&format!("netns del {name}"));
        }
    }
}

impl Host {
    /// Moves this thread to the host, permanently.
    pub(crate) fn enter(&self) {
        enter(&self.name);
    }

    /// Runs `body` on the host.
    pub(crate) fn within<T: Send>(&self, body: impl FnOnce() -> T + Send) -> T {
        within(&self.name, body)
    }
}

fn enter(name: &str) {
    let namespace = File::open(format!("/run/netns/{name}")).unwrap();
    move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
}

fn within<T: Send>(name: &str, body: impl FnOnce() -> T + Send) -> T {
    let run = || {
        enter(name);
        body()
    };
    thread::scope(|scope| scope.spawn(run).join()).unwrap()
}

/// Prints the reason for which a test is skipped. CI has all that tests need, so there it fails.
fn skipped<T>(why: &str) -> Option<T> {
    assert!(std::env::var_os("RAMPMETER_CI").is_none(), "skipped in CI: {why}");
    println!("skipped: {why}");
    None
}

/// Returns the prefix of the names of this process's namespaces.
pub(crate) fn prefix() -> String {
    format!("rampmeter-{}-", std::process::id())
}

fn name() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("{}{}", prefix(), NEXT.fetch_add(1, Ordering::Relaxed))
}

fn ip(args: &str) -> Result<String, String> {
    let output = Command::new("ip").args(args.split_whitespace()).output();
    let output = output.map_err(|error| format!("cannot run ip: {error}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
    }
}
