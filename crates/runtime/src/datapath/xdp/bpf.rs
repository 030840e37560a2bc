//! Program at the interface that separates a node's packets from all others.
//!
//! It has 27 instructions. They are written here and passed to the system call, which needs neither
//! a compiler nor a loader. It is attached by a link, which the kernel removes when its descriptor
//! is closed, at every end of the process.

#![allow(unsafe_code, reason = "the bpf system call")]

use std::io;
use std::mem::size_of;
use std::net::SocketAddrV4;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Place at which the program runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum XdpMode {
    /// The network stack, after the driver: works on every interface, and is faster on virtual
    /// Ethernet.
    #[default]
    Generic,
    /// The driver: for real interfaces whose drivers support it.
    Native,
}

/// XDP program that redirects IPv4 UDP packets for one address and two ports. They are delivered to
/// the socket of their queue; all other packets pass to the kernel. It works until it is dropped.
#[derive(Debug)]
pub struct Steering {
    _link: OwnedFd,
    _map: OwnedFd,
}

impl Steering {
    /// Steers packets for `local` and for the next port that arrive at an interface into `sockets`.
    /// These are pairs of a queue's number and an AF_XDP socket that is bound to it.
    ///
    /// # Errors
    /// Missing privileges, another program at the interface, or an interface without support.
    pub fn attach(
        interface: u32,
        attach: XdpMode,
        local: SocketAddrV4,
        sockets: &[(u32, BorrowedFd<'_>)],
    ) -> io::Result<Self> {
        let last = sockets.iter().map(|&(queue, _)| queue).max().unwrap_or(0);
        let map = create_map(last + 1)?;
        let program = load(&steering(local, &map))?;
        for &(queue, socket) in sockets {
            set(&map, queue, socket)?;
        }
        let link = attach_to(interface, attach, &program)?;
        Ok(Self { _link: link, _map: map })
    }
}

/// One instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
struct Insn {
    code: u8,
    registers: u8,
    offset: i16,
    immediate: i32,
}

// Operations. Loads name the bytes that they load; comparisons skip `offset` instructions if they
// hold.
const LOAD_8: u8 = 0x71;
const LOAD_16: u8 = 0x69;
const LOAD_32: u8 = 0x61;
const LOAD_MAP: u8 = 0x18;
const MOVE: u8 = 0xbf;
const MOVE_CONST: u8 = 0xb7;
const ADD_CONST: u8 = 0x07;
const AND_CONST: u8 = 0x57;
const IF_GREATER: u8 = 0x2d;
const IF_EQUAL_CONST: u8 = 0x15;
/// Compares the lower 32 bits, so that constants are not extended by their sign.
const IF_NOT_EQUAL_CONST: u8 = 0x56;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;
/// Flag of `LOAD_MAP` for a file descriptor.
const IS_MAP_FD: u8 = 1;
/// The helper `bpf_redirect_map`.
const REDIRECT_MAP: i32 = 51;
/// Return value that passes the packet to the kernel.
const XDP_PASS: i32 = 2;

const fn insn(code: u8, dst: u8, src: u8, offset: i16, immediate: i32) -> Insn {
    let registers = if cfg!(target_endian = "little") { dst | src << 4 } else { dst << 4 | src };
    Insn { code, registers, offset, immediate }
}

/// Returns the program. Its argument, in register 1, points to `struct xdp_md`: the packet's first
/// byte is at offset 0 of that, its end at 4, the queue at 16. Fields of the packet are compared as
/// they are in memory, big-endian.
fn steering(local: SocketAddrV4, map: &OwnedFd) -> [Insn; 27] {
    let word = |value: u16| i32::from(value.to_be());
    let address = u32::from_ne_bytes(local.ip().octets()) as i32;
    let (control, data) = (word(local.port()), word(local.port() + 1));
    // Offsets from the instruction at `at` to the one that passes the packet, and to the one that
    // redirects.
    let pass = |at: i16| 25 - at - 1;
    let redirect = |at: i16| 19 - at - 1;
    [
        // 0: r2 = packet, r3 = its end
        insn(LOAD_32, 2, 1, 0, 0),
        insn(LOAD_32, 3, 1, 4, 0),
        // 2: pass packets shorter than the three headers
        insn(MOVE, 4, 2, 0, 0),
        insn(ADD_CONST, 4, 0, 0, 42),
        insn(IF_GREATER, 4, 3, pass(4), 0),
        // 5: pass other protocols than IPv4
        insn(LOAD_16, 5, 2, 12, 0),
        insn(IF_NOT_EQUAL_CONST, 5, 0, pass(6), word(0x0800)),
        // 7: pass packets with IP options
        insn(LOAD_8, 5, 2, 14, 0),
        insn(IF_NOT_EQUAL_CONST, 5, 0, pass(8), 0x45),
        // 9: pass fragments: "more" is set, or the offset is not zero
        insn(LOAD_16, 5, 2, 20, 0),
        insn(AND_CONST, 5, 0, 0, word(0x3fff)),
        insn(IF_NOT_EQUAL_CONST, 5, 0, pass(11), 0),
        // 12: pass other protocols than UDP
        insn(LOAD_8, 5, 2, 23, 0),
        insn(IF_NOT_EQUAL_CONST, 5, 0, pass(13), 17),
        // 14: pass other addresses
        insn(LOAD_32, 5, 2, 30, 0),
        insn(IF_NOT_EQUAL_CONST, 5, 0, pass(15), address),
        // 16: pass other ports
        insn(LOAD_16, 5, 2, 36, 0),
        insn(IF_EQUAL_CONST, 5, 0, redirect(17), control),
        insn(IF_NOT_EQUAL_CONST, 5, 0, pass(18), data),
        // 19: return redirect_map(map, queue, otherwise pass)
        insn(LOAD_32, 2, 1, 16, 0),
        insn(LOAD_MAP, 1, IS_MAP_FD, 0, map.as_raw_fd()),
        insn(0, 0, 0, 0, 0),
        insn(MOVE_CONST, 3, 0, 0, XDP_PASS),
        insn(CALL, 0, 0, 0, REDIRECT_MAP),
        insn(EXIT, 0, 0, 0, 0),
        // 25: return pass
        insn(MOVE_CONST, 0, 0, 0, XDP_PASS),
        insn(EXIT, 0, 0, 0, 0),
    ]
}

// Commands of the system call, and their arguments as in the kernel's `union bpf_attr`.

fn create_map(entries: u32) -> io::Result<OwnedFd> {
    #[repr(C)]
    struct CreateMap {
        kind: u32,
        key_size: u32,
        value_size: u32,
        entries: u32,
        flags: u32,
    }
    const MAP_CREATE: u32 = 0;
    const XSK_MAP: u32 = 17;
    let args = CreateMap { kind: XSK_MAP, key_size: 4, value_size: 4, entries, flags: 0 };
    open(MAP_CREATE, &args).map_err(|error| explained("create a map of sockets", error))
}

fn set(map: &OwnedFd, key: u32, socket: BorrowedFd<'_>) -> io::Result<()> {
    #[repr(C)]
    struct SetElement {
        map: u32,
        _gap: u32,
        key: u64,
        value: u64,
        flags: u64,
    }
    const SET_ELEMENT: u32 = 2;
    let value = socket.as_raw_fd() as u32;
    let args = SetElement {
        map: map.as_raw_fd() as u32,
        _gap: 0,
        key: address_of(&key),
        value: address_of(&value),
        flags: 0,
    };
    call(SET_ELEMENT, &args).map_err(|error| explained("put the socket into its map", error))?;
    Ok(())
}

fn load(program: &[Insn]) -> io::Result<OwnedFd> {
    #[repr(C)]
    struct LoadProgram {
        kind: u32,
        n_insns: u32,
        insns: u64,
        license: u64,
        log_level: u32,
        log_len: u32,
        log: u64,
        kernel: u32,
        flags: u32,
        name: [u8; 16],
        interface: u32,
        attach: u32,
    }
    const LOAD_PROGRAM: u32 = 5;
    const XDP_PROGRAM: u32 = 6;
    let license = c"Apache-2.0";
    let args = LoadProgram {
        kind: XDP_PROGRAM,
        n_insns: program.len() as u32,
        insns: program.as_ptr().expose_provenance() as u64,
        license: license.as_ptr().expose_provenance() as u64,
        log_level: 0,
        log_len: 0,
        log: 0,
        kernel: 0,
        flags: 0,
        name: *b"rampmeter\0\0\0\0\0\0\0",
        interface: 0,
        attach: ATTACH_XDP,
    };
    open(LOAD_PROGRAM, &args).map_err(|error| explained("load the XDP program", error))
}

const ATTACH_XDP: u32 = 37;

fn attach_to(interface: u32, attach: XdpMode, program: &OwnedFd) -> io::Result<OwnedFd> {
    #[repr(C)]
    struct CreateLink {
        program: u32,
        interface: u32,
        attach: u32,
        flags: u32,
    }
    const CREATE_LINK: u32 = 28;
    let flags = match attach {
        XdpMode::Generic => 1 << 1,
        XdpMode::Native => 1 << 2,
    };
    let program = program.as_raw_fd() as u32;
    let args = CreateLink { program, interface, attach: ATTACH_XDP, flags };
    open(CREATE_LINK, &args).map_err(|error| match error.raw_os_error() {
        Some(libc::EBUSY | libc::EEXIST) => {
            let why = "cannot attach the XDP program: the interface has one already";
            io::Error::new(io::ErrorKind::ResourceBusy, why)
        }
        Some(libc::EOPNOTSUPP) => {
            let why =
                "cannot attach the XDP program: the driver does not support XDP; try generic XDP";
            io::Error::new(io::ErrorKind::Unsupported, why)
        }
        _ => explained("attach the XDP program", error),
    })
}

fn explained(action: &str, error: io::Error) -> io::Error {
    let hint = match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => ": CAP_BPF and CAP_NET_ADMIN are needed",
        Some(libc::ENOSYS) => ": this kernel has no BPF",
        _ => "",
    };
    io::Error::new(error.kind(), format!("cannot {action}: {error}{hint}"))
}

fn address_of<T>(value: &T) -> u64 {
    std::ptr::from_ref(value).expose_provenance() as u64
}

fn open<T>(command: u32, args: &T) -> io::Result<OwnedFd> {
    let fd = call(command, args)?;
    // SAFETY: the commands used here return a new descriptor, which no other code owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn call<T>(command: u32, args: &T) -> io::Result<i32> {
    let args_ptr = std::ptr::from_ref(args);
    // SAFETY: `args` is laid out as the kernel's arguments of the command and has the length that
    // is passed; memory that it points to outlives the call. The kernel reads missing fields as
    // zeros.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, args_ptr, size_of::<T>()) };
    if result >= 0 { Ok(result as i32) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jumps_have_the_correct_targets() {
        let map = OwnedFd::from(std::fs::File::open("/dev/null").unwrap());
        let program = steering("10.0.0.1:7000".parse().unwrap(), &map);
        for (at, insn) in program.iter().enumerate().filter(|(_, i)| i.offset > 0) {
            let lands = at + 1 + insn.offset as usize;
            match insn.code {
                IF_NOT_EQUAL_CONST | IF_GREATER => {
                    assert_eq!(program[lands], super::insn(MOVE_CONST, 0, 0, 0, XDP_PASS));
                }
                IF_EQUAL_CONST => assert_eq!(program[lands], super::insn(LOAD_32, 2, 1, 16, 0)),
                _ => {}
            }
        }
        assert_eq!(program[26].code, EXIT);
    }
}
