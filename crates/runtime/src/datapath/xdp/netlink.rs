//! Links, routes and neighbours of the kernel, by rtnetlink.
//!
//! A socket stays in the network namespace in which it was opened, unlike files below `/proc` and
//! `/sys`.

use std::collections::BTreeMap;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, sockopt,
};

use super::frame::Mac;

/// Network interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) index: u32,
    pub(super) mac: Mac,
    pub(super) mtu: usize,
}

/// Next hop to an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hop {
    /// Interface by which packets are sent.
    pub(super) interface: u32,
    /// Address on the link: a router's, or the destination itself.
    pub(super) next: Ipv4Addr,
}

/// Socket for requests to the kernel.
#[derive(Debug)]
pub(super) struct Netlink {
    socket: OwnedFd,
    sequence: u32,
    buffer: Vec<u8>,
}

// Message types, flags and attributes of <linux/netlink.h>, <linux/rtnetlink.h>,
// <linux/neighbour.h>.
const ERROR: u16 = 2;
const DONE: u16 = 3;
const LINK: u16 = 16;
const GET_LINK: u16 = 18;
const ROUTE: u16 = 24;
const GET_ROUTE: u16 = 26;
const NEIGHBOUR: u16 = 28;
const GET_NEIGHBOUR: u16 = 30;
const REQUEST: u16 = 0x1;
const DUMP: u16 = 0x300;
const LINK_MAC: u16 = 1;
const LINK_NAME: u16 = 3;
const LINK_MTU: u16 = 4;
const ROUTE_TO: u16 = 1;
const ROUTE_INTERFACE: u16 = 4;
const ROUTE_GATEWAY: u16 = 5;
const NEIGHBOUR_IP: u16 = 1;
const NEIGHBOUR_MAC: u16 = 2;
const NEIGHBOUR_INTERFACE: u16 = 8;
/// Reachable, stale, delay, probe, no ARP needed, permanent: states with a usable address.
const USABLE: u16 = 0x02 | 0x04 | 0x08 | 0x10 | 0x40 | 0x80;
const INET: u8 = 2;

const HEADER: usize = 16;
/// Bytes after the header of messages about links, routes and neighbours.
const LINK_LEN: usize = 16;
const ROUTE_LEN: usize = 12;
const NEIGHBOUR_LEN: usize = 12;

/// Timeout of an answer. The kernel answers at once.
const PATIENCE: Duration = Duration::from_secs(1);

impl Netlink {
    pub(super) fn open() -> io::Result<Self> {
        let (family, kind) = (AddressFamily::NETLINK, SocketType::RAW);
        // No protocol means the first, which is that of routes.
        let socket = rustix::net::socket_with(family, kind, SocketFlags::CLOEXEC, None)?;
        sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(PATIENCE))?;
        Ok(Self { socket, sequence: 0, buffer: vec![0; 64 << 10] })
    }

    /// Returns the interface of this name.
    pub(super) fn link(&mut self, name: &str) -> io::Result<Link> {
        let mut found = None;
        let mut name_z = name.as_bytes().to_vec();
        name_z.push(0);
        let attribute = (LINK_NAME, &name_z[..]);
        self.send_request(GET_LINK, REQUEST, &[0; LINK_LEN], &[attribute], |kind, body| {
            let attributes = attributes(body.get(LINK_LEN..).unwrap_or_default());
            let mac = attributes.get(&LINK_MAC).and_then(|v| Mac::try_from(*v).ok());
            let mtu = attributes.get(&LINK_MTU).and_then(|v| word(v));
            if let (LINK, Some(index), Some(mtu)) = (kind, body.get(4..8).and_then(word), mtu) {
                let mac = mac.unwrap_or_default();
                found = Some(Link { index, mac, mtu: mtu as usize });
            }
        })?;
        found.ok_or_else(|| io::Error::other("the kernel's answer about the link makes no sense"))
    }

    /// Returns the next hop to `to`. An error if there is no route.
    pub(super) fn hop(&mut self, to: Ipv4Addr) -> io::Result<Hop> {
        let mut found = None;
        let mut body = [0; ROUTE_LEN];
        (body[0], body[1]) = (INET, 32);
        let attribute = (ROUTE_TO, &to.octets()[..]);
        self.send_request(GET_ROUTE, REQUEST, &body, &[attribute], |kind, body| {
            let attributes = attributes(body.get(ROUTE_LEN..).unwrap_or_default());
            let interface = attributes.get(&ROUTE_INTERFACE).and_then(|v| word(v));
            let gateway = attributes.get(&ROUTE_GATEWAY).and_then(|v| ipv4(v));
            if let (ROUTE, Some(interface)) = (kind, interface) {
                found = Some(Hop { interface, next: gateway.unwrap_or(to) });
            }
        })?;
        found.ok_or_else(|| io::Error::other("the kernel's answer about the route makes no sense"))
    }

    /// Returns all neighbours on an interface whose link addresses are resolved.
    pub(super) fn neighbours(&mut self, interface: u32) -> io::Result<BTreeMap<Ipv4Addr, Mac>> {
        let mut found = BTreeMap::new();
        let mut body = [0; NEIGHBOUR_LEN];
        body[0] = INET;
        let attribute = (NEIGHBOUR_INTERFACE, &interface.to_ne_bytes()[..]);
        self.send_request(GET_NEIGHBOUR, REQUEST | DUMP, &body, &[attribute], |kind, body| {
            let attributes = attributes(body.get(NEIGHBOUR_LEN..).unwrap_or_default());
            let ip = attributes.get(&NEIGHBOUR_IP).and_then(|v| ipv4(v));
            let mac = attributes.get(&NEIGHBOUR_MAC).and_then(|v| Mac::try_from(*v).ok());
            let is_here = body.get(4..8).and_then(word) == Some(interface);
            let state = body.get(8..10).map_or(0, |s| u16::from_ne_bytes([s[0], s[1]]));
            if let (NEIGHBOUR, true, Some(ip), Some(mac)) = (kind, is_here, ip, mac)
                && state & USABLE != 0
            {
                found.insert(ip, mac);
            }
        })?;
        Ok(found)
    }

    /// Sends a request and calls the handler with the type and body of each message of the answer.
    fn send_request(
        &mut self,
        kind: u16,
        flags: u16,
        body: &[u8],
        attributes: &[(u16, &[u8])],
        mut each: impl FnMut(u16, &[u8]),
    ) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        send(
            &self.socket,
            &request(kind, flags, self.sequence, body, attributes),
            SendFlags::empty(),
        )?;
        loop {
            let (got, _) = recv(&self.socket, self.buffer.as_mut_slice(), RecvFlags::empty())?;
            let mut rest = &self.buffer[..got];
            while let Some((header, body, after)) = message(rest) {
                rest = after;
                if header.sequence != self.sequence {
                    continue;
                }
                match header.kind {
                    DONE => return Ok(()),
                    ERROR => {
                        let code = body.get(..4).and_then(word).unwrap_or(0) as i32;
                        let error = io::Error::from_raw_os_error(-code);
                        return if code == 0 { Ok(()) } else { Err(error) };
                    }
                    kind => each(kind, body),
                }
                if flags & DUMP == 0 {
                    return Ok(());
                }
            }
        }
    }
}

fn request(
    kind: u16,
    flags: u16,
    sequence: u32,
    body: &[u8],
    attributes: &[(u16, &[u8])],
) -> Vec<u8> {
    let mut out = vec![0; HEADER];
    out.extend(body);
    for (kind, value) in attributes {
        out.extend((4 + value.len() as u16).to_ne_bytes());
        out.extend(kind.to_ne_bytes());
        out.extend(*value);
        out.resize(out.len().next_multiple_of(4), 0);
    }
    let len = out.len() as u32;
    out[..4].copy_from_slice(&len.to_ne_bytes());
    out[4..6].copy_from_slice(&kind.to_ne_bytes());
    out[6..8].copy_from_slice(&flags.to_ne_bytes());
    out[8..12].copy_from_slice(&sequence.to_ne_bytes());
    out
}

struct Header {
    kind: u16,
    sequence: u32,
}

/// Returns the first message in `bytes`, its body, and the rest.
fn message(bytes: &[u8]) -> Option<(Header, &[u8], &[u8])> {
    let len = word(bytes.get(..4)?)? as usize;
    let kind = u16::from_ne_bytes(bytes.get(4..6)?.try_into().ok()?);
    let sequence = word(bytes.get(8..12)?)?;
    let body = bytes.get(HEADER..len)?;
    let after = bytes.get(len.next_multiple_of(4)..).unwrap_or_default();
    Some((Header { kind, sequence }, body, after))
}

/// Returns the attributes of a message, by type.
fn attributes(mut bytes: &[u8]) -> BTreeMap<u16, &[u8]> {
    let mut found = BTreeMap::new();
    while let Some(head) = bytes.get(..4) {
        let len = usize::from(u16::from_ne_bytes([head[0], head[1]]));
        let kind = u16::from_ne_bytes([head[2], head[3]]) & 0x3fff;
        let Some(value) = bytes.get(4..len) else { break };
        found.insert(kind, value);
        bytes = bytes.get(len.next_multiple_of(4)..).unwrap_or_default();
    }
    found
}

fn word(bytes: &[u8]) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.try_into().ok()?))
}

fn ipv4(bytes: &[u8]) -> Option<Ipv4Addr> {
    Some(<[u8; 4]>::try_from(bytes).ok()?.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel has a route to this host: over the loopback interface, which has no link address.
    #[test]
    fn the_loopback_interface_is_known() {
        let mut netlink = Netlink::open().unwrap();
        let link = netlink.link("lo").unwrap();
        assert_eq!((link.index, link.mac), (1, [0; 6]));
        let hop = netlink.hop(Ipv4Addr::LOCALHOST).unwrap();
        assert_eq!(hop, Hop { interface: 1, next: Ipv4Addr::LOCALHOST });
        netlink.neighbours(link.index).unwrap();
        let error = netlink.link("no-such-link").unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENODEV));
    }

    #[test]
    fn messages_and_attributes_that_are_cut_short_end_the_list() {
        let whole = request(GET_LINK, REQUEST, 7, &[0; LINK_LEN], &[(LINK_NAME, b"eth0\0")]);
        let (header, body, rest) = message(&whole).unwrap();
        assert_eq!((header.kind, header.sequence, rest.len()), (GET_LINK, 7, 0));
        assert_eq!(attributes(&body[LINK_LEN..]).get(&LINK_NAME), Some(&&b"eth0\0"[..]));
        for len in 0..whole.len() - 3 {
            assert!(message(&whole[..len]).is_none());
        }
        assert!(attributes(&[3, 0, 1, 0]).is_empty());
        assert!(attributes(&[9, 0, 1, 0, 5]).is_empty());
    }
}
