//! Interfaces that take no joined segments.
//!
//! There are two ways to have the kernel take segments apart before the link. TCP would not join
//! any where an interface allows one segment at a time, and loses most of its rate; the interface's
//! features are what it expects to be without. What concerns UDP among these has no ioctl of its
//! own, and UDP joins what it is told to in either case.

#![allow(unsafe_code, reason = "a system call on memory that is ours")]

use std::io;
use std::mem::zeroed;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;

use crate::netns::{DEVICE, Host, Net};

/// Makes the interfaces take UDP packet by packet.
pub(crate) fn forbid_udp(net: &Net) {
    for Host { name, .. } in &net.hosts {
        net.ip(&format!("-n {name} link set dev {DEVICE} gso_max_segs 1"));
    }
}

/// Makes the interfaces take TCP packet by packet.
pub(crate) fn forbid_tcp(net: &Net) -> io::Result<()> {
    net.hosts.iter().try_for_each(|host| {
        host.within(|| [ETHTOOL_STSO, ETHTOOL_SGSO].into_iter().try_for_each(switch_off))
    })
}

/// Set what interfaces do with TCP's segments, and with those of others.
const ETHTOOL_STSO: u32 = 0x1f;
const ETHTOOL_SGSO: u32 = 0x24;

/// Switches a feature of this namespace's interface off.
fn switch_off(command: u32) -> io::Result<()> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    let mut value = [command, 0];
    // SAFETY: all-zero bytes are a valid request.
    let mut request: libc::ifreq = unsafe { zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(DEVICE.bytes()) {
        *to = from.cast_signed() as libc::c_char;
    }
    request.ifr_ifru.ifru_data = value.as_mut_ptr().cast();
    // SAFETY: the request and what it points to outlive the call, which reads a command and a
    // value.
    let result =
        unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut request) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
