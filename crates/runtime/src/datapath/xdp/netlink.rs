//! Links, routes and neighbours of the kernel, by rtnetlink.
//!
//! A socket stays in the network namespace in which it was opened, unlike files below `/proc` and
//! `/sys`.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::net::Ipv4Addr;

use libc::MSG_DONTWAIT;
use netlink_packet_core::{
    DefaultNla, Emitable, NLA_HEADER_SIZE, NLA_TYPE_MASK, NLM_F_DUMP, NLM_F_REQUEST,
    NetlinkDeserializable, NetlinkHeader, NetlinkMessage, NetlinkPayload, NetlinkSerializable,
    NlasIterator,
};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};

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
    socket: Socket,
    sequence: u32,
    buffer: Vec<u8>,
}

// Message types and attributes of <linux/if_link.h>, <linux/rtnetlink.h> and <linux/neighbour.h>.
// Only these attributes are decoded: those of later kernels cannot be in the way.
const LINK: u16 = libc::RTM_NEWLINK;
const ROUTE: u16 = libc::RTM_NEWROUTE;
const NEIGHBOUR: u16 = libc::RTM_NEWNEIGH;
const LINK_MAC: u16 = libc::IFLA_ADDRESS;
const LINK_NAME: u16 = libc::IFLA_IFNAME;
const LINK_MTU: u16 = libc::IFLA_MTU;
const ROUTE_TO: u16 = libc::RTA_DST;
const ROUTE_INTERFACE: u16 = libc::RTA_OIF;
const ROUTE_GATEWAY: u16 = libc::RTA_GATEWAY;
const NEIGHBOUR_IP: u16 = libc::NDA_DST;
const NEIGHBOUR_MAC: u16 = libc::NDA_LLADDR;
const NEIGHBOUR_INTERFACE: u16 = 8;
/// States of neighbours with a usable address.
const USABLE: u16 = libc::NUD_REACHABLE
    | libc::NUD_STALE
    | libc::NUD_DELAY
    | libc::NUD_PROBE
    | libc::NUD_NOARP
    | libc::NUD_PERMANENT;
const INET: u8 = libc::AF_INET as u8;

/// Bytes after the header of messages about links, routes and neighbours.
const LINK_LEN: usize = 16;
const ROUTE_LEN: usize = 12;
const NEIGHBOUR_LEN: usize = 12;
/// Size of the buffer for an answer in bytes.
const ANSWER_MAX: usize = 64 << 10;

impl Netlink {
    pub(super) fn open() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Self { socket, sequence: 0, buffer: Vec::with_capacity(ANSWER_MAX) })
    }

    /// Returns the interface of this name.
    pub(super) fn link(&mut self, name: &str) -> io::Result<Link> {
        let mut found = None;
        let name_z = [name.as_bytes(), &[0]].concat();
        let request = Message::new(libc::RTM_GETLINK, &[0; LINK_LEN], LINK_NAME, &name_z);
        self.send_request(request, 0, |Message { kind, body }| {
            let attributes = attributes(body.get(LINK_LEN..).unwrap_or_default());
            let mac = attributes.get(&LINK_MAC).and_then(|v| Mac::try_from(*v).ok());
            let mtu = attributes.get(&LINK_MTU).and_then(|v| word(v));
            if let (&LINK, Some(index), Some(mtu)) = (kind, body.get(4..8).and_then(word), mtu) {
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
        let request = Message::new(libc::RTM_GETROUTE, &body, ROUTE_TO, &to.octets());
        self.send_request(request, 0, |Message { kind, body }| {
            let attributes = attributes(body.get(ROUTE_LEN..).unwrap_or_default());
            let interface = attributes.get(&ROUTE_INTERFACE).and_then(|v| word(v));
            let gateway = attributes.get(&ROUTE_GATEWAY).and_then(|v| ipv4(v));
            if let (&ROUTE, Some(interface)) = (kind, interface) {
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
        let of_interface = interface.to_ne_bytes();
        let request = Message::new(libc::RTM_GETNEIGH, &body, NEIGHBOUR_INTERFACE, &of_interface);
        self.send_request(request, NLM_F_DUMP, |Message { kind, body }| {
            let attributes = attributes(body.get(NEIGHBOUR_LEN..).unwrap_or_default());
            let ip = attributes.get(&NEIGHBOUR_IP).and_then(|v| ipv4(v));
            let mac = attributes.get(&NEIGHBOUR_MAC).and_then(|v| Mac::try_from(*v).ok());
            let is_here = body.get(4..8).and_then(word) == Some(interface);
            let state = body.get(8..10).map_or(0, |s| u16::from_ne_bytes([s[0], s[1]]));
            if let (&NEIGHBOUR, true, Some(ip), Some(mac)) = (kind, is_here, ip, mac)
                && state & USABLE != 0
            {
                found.insert(ip, mac);
            }
        })?;
        Ok(found)
    }

    /// Sends a request and calls the handler with each message of the answer, which is available as
    /// soon as the request has been sent.
    fn send_request(
        &mut self,
        request: Message,
        flags: u16,
        mut each: impl FnMut(&Message),
    ) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        let mut header = NetlinkHeader::default();
        (header.flags, header.sequence_number) = (NLM_F_REQUEST | flags, self.sequence);
        let mut packet = NetlinkMessage::new(header, NetlinkPayload::InnerMessage(request));
        packet.finalize();
        let mut bytes = vec![0; packet.buffer_len()];
        packet.serialize(&mut bytes);
        self.socket.send(&bytes, 0)?;
        loop {
            self.buffer.clear();
            self.socket.recv(&mut self.buffer, MSG_DONTWAIT)?;
            let mut rest = &self.buffer[..];
            while !rest.is_empty() {
                let message = NetlinkMessage::<Message>::deserialize(rest)
                    .map_err(|error| io::Error::other(error.to_string()))?;
                let len = (message.header.length as usize).next_multiple_of(4);
                rest = rest.get(len..).unwrap_or_default();
                if message.header.sequence_number != self.sequence {
                    continue;
                }
                match message.payload {
                    NetlinkPayload::Done(_) => return Ok(()),
                    NetlinkPayload::Error(error) if error.code.is_some() => {
                        return Err(error.to_io());
                    }
                    NetlinkPayload::InnerMessage(message) => each(&message),
                    _ => {}
                }
                if flags & NLM_F_DUMP == 0 {
                    return Ok(());
                }
            }
        }
    }
}

/// Message of rtnetlink: its type, its fixed part and its attributes.
#[derive(Debug)]
struct Message {
    kind: u16,
    body: Vec<u8>,
}

impl Message {
    /// Returns a request with one attribute.
    fn new(kind: u16, fixed: &[u8], attribute: u16, value: &[u8]) -> Self {
        let attribute = DefaultNla::new(attribute, value.to_vec());
        let mut body = vec![0; fixed.len() + attribute.buffer_len()];
        body[..fixed.len()].copy_from_slice(fixed);
        attribute.emit(&mut body[fixed.len()..]);
        Self { kind, body }
    }
}

impl NetlinkSerializable for Message {
    fn message_type(&self) -> u16 {
        self.kind
    }

    fn buffer_len(&self) -> usize {
        self.body.len()
    }

    fn serialize(&self, buffer: &mut [u8]) {
        buffer.copy_from_slice(&self.body);
    }
}

impl NetlinkDeserializable for Message {
    type Error = Infallible;

    fn deserialize(header: &NetlinkHeader, payload: &[u8]) -> Result<Self, Infallible> {
        Ok(Self { kind: header.message_type, body: payload.to_vec() })
    }
}

/// Returns the attributes of a message by type, up to the first that is malformed.
fn attributes(bytes: &[u8]) -> BTreeMap<u16, &[u8]> {
    let each = NlasIterator::new(bytes).map_while(Result::ok);
    each.map(|one| {
        let (kind, len) = (one.kind() & NLA_TYPE_MASK, usize::from(one.length()));
        (kind, &one.into_inner()[NLA_HEADER_SIZE..len])
    })
    .collect()
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
    fn truncated_attributes_end_the_list() {
        let whole = Message::new(libc::RTM_GETLINK, &[0; LINK_LEN], LINK_NAME, b"eth0\0").body;
        let expected = BTreeMap::from([(LINK_NAME, &b"eth0\0"[..])]);
        assert_eq!(attributes(&whole[LINK_LEN..]), expected);
        for len in LINK_LEN..LINK_LEN + 9 {
            assert!(attributes(&whole[LINK_LEN..len]).is_empty());
        }
        assert!(attributes(&[3, 0, 1, 0]).is_empty());
    }
}
