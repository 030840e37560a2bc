//! A round through `sendmmsg` and `recvmmsg`.

use std::io;
use std::mem::zeroed;
use std::os::fd::AsRawFd;

use libc::{iovec, mmsghdr};

use crate::{JOINED_MAX, LEN, Pair, ROUND, Round, packets};

/// Returns parts of `memory`, `stride` bytes apart and `len` long, and a message for each.
fn messages(memory: &mut [u8], stride: usize, len: usize) -> (Vec<iovec>, Vec<mmsghdr>) {
    let part = |part: &mut [u8]| iovec { iov_base: part.as_mut_ptr().cast(), iov_len: len };
    let mut parts: Vec<iovec> = memory.chunks_mut(stride).map(part).collect();
    let header = |part: &mut iovec| {
        // SAFETY: all zeros are a message without address, parts and control.
        let mut message: mmsghdr = unsafe { zeroed() };
        (message.msg_hdr.msg_iov, message.msg_hdr.msg_iovlen) = (part, 1);
        message
    };
    let headers = parts.iter_mut().map(header).collect();
    (parts, headers)
}

/// Sends and receives a round of messages, as many at once as the pair sends.
pub(crate) fn round(pair: Pair) -> Round {
    let (n, bytes) = (pair.sends(), pair.bytes());
    let mut data = vec![1; ROUND * LEN];
    let mut into = vec![0; n * JOINED_MAX];
    Box::new(move || {
        let (_parts, mut headers) = messages(&mut data, bytes, bytes);
        // SAFETY: the headers point to parts, and these to memory, all of which outlive the call.
        let sent = unsafe {
            libc::sendmmsg(pair.tx.as_raw_fd(), headers.as_mut_ptr(), headers.len() as u32, 0)
        };
        if sent < n as i32 {
            return Err(io::Error::last_os_error());
        }
        let (_parts, mut headers) = messages(&mut into, JOINED_MAX, JOINED_MAX);
        // SAFETY: as above.
        let come = unsafe {
            let (socket, timeout) = (pair.rx.as_raw_fd(), std::ptr::null_mut());
            let len = headers.len() as u32;
            libc::recvmmsg(socket, headers.as_mut_ptr(), len, libc::MSG_DONTWAIT, timeout)
        };
        let come = usize::try_from(come).map_err(|_| io::Error::last_os_error())?;
        Ok(headers[..come].iter().map(|message| packets(message.msg_len as usize)).sum())
    })
}
