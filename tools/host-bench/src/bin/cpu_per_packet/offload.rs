//! Interfaces that accept no coalesced segments.
//!
//! There are two ways to make the kernel segment before the link: a limit of one segment
//! (`gso_max_segs`), and a disabled feature of the interface. With the limit TCP would not coalesce
//! at all, and lose most of its rate. TCP still coalesces if only the feature is disabled. UDP's
//! feature has no ioctl, and UDP coalesces on request in either case.

#![allow(unsafe_code, reason = "a system call on memory that is ours")]

use std::io;
use std::mem::zeroed;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;

use crate::netns::{DEVICE, Host, Net};

/// Makes the interfaces accept UDP only packet by packet.
pub(crate) fn forbid_udp(net: &Net) {
    for Host { name, .. } in &net.hosts {
        net.ip(&format!("-n {name} link set dev {DEVICE} gso_max_segs 1"));
    }
}

/// Makes the interfaces accept TCP only packet by packet.
pub(crate) fn forbid_tcp(net: &Net) -> io::Result<()> {
    net.hosts.iter().try_for_each(|host| {
        host.within(|| [ETHTOOL_STSO, ETHTOOL_SGSO].into_iter().try_for_each(switch_off))
    })
}

/// Commands that set segmentation of TCP, and of other protocols.
const ETHTOOL_STSO: u32 = 0x1f;
const ETHTOOL_SGSO: u32 = 0x24;

/// Disables a feature of this namespace's interface.
fn switch_off(command: u32) -> io::Result<()> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    let mut value = [command, 0];
    // SAFETY: all-zero bytes are a valid request.
    let mut request: libc::ifreq = unsafe { zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(DEVICE.bytes()) {
        *to = from.cast_signed() as libc::c_char;
    }
    request.ifr_ifru.ifru_data = value.as_mut_ptr().cast();
    // SAFETY: the request and its data outlive the call, which reads a command and a value.
    let result =
        unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut request) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
