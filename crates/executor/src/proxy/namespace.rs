//! A socket that listens inside the network namespace of another process while we hold it.

use std::io;
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener};
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use rustix::net::{AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer};
use rustix::net::{SendAncillaryMessage, SendFlags, SocketFlags, SocketType};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// Opens a TCP socket that listens on `port` inside the network namespace of the process `pid`.
///
/// Needs no privilege: the namespace must belong to a user namespace that this user made (as under `bwrap
/// --unshare-user`), or this process must be root. Call it while the process waits, before the command starts. All
/// addresses of the namespace are listened on, because loopback may not be up yet; it must be one with nothing else
/// in it.
///
/// A process that has threads cannot enter a user namespace (`setns(2)`), so a child is forked that enters both, opens
/// the socket, sends it back and ends without ever executing anything. slirp4netns and pasta do the same.
///
/// # Errors
/// The process is gone, the namespaces cannot be entered, or the port is taken.
pub fn listen_inside(pid: u32, port: u16) -> io::Result<TcpListener> {
    let network = OwnedFd::from(std::fs::File::open(format!("/proc/{pid}/ns/net"))?);
    let user = owner(network.as_fd())?;
    let own_user = std::fs::metadata("/proc/self/ns/user")?;
    let same_user = {
        use std::os::unix::fs::MetadataExt as _;
        let theirs = std::fs::File::from(user.try_clone()?).metadata()?;
        (theirs.dev(), theirs.ino()) == (own_user.dev(), own_user.ino())
    };
    let (ours, theirs) =
        rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;

    // Never executed: `enter` always fails in the end.
    let mut child = Command::new("/proc/self/exe");
    child.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let enter = move || -> io::Result<()> {
        if !same_user {
            move_into_link_name_space(user.as_fd(), Some(LinkNameSpaceType::User))?;
        }
        move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network))?;
        let socket =
            rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        rustix::net::bind(&socket, &SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port))?;
        rustix::net::listen(&socket, 128)?;
        let descriptors = [socket.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        control.push(SendAncillaryMessage::ScmRights(&descriptors));
        rustix::net::sendmsg(&theirs, &[io::IoSlice::new(b"s")], &mut control, SendFlags::empty())?;
        Err(rustix::io::Errno::CANCELED.into())
    };
    #[expect(
        unsafe_code,
        reason = "only a forked child may enter a user namespace; the closure makes system calls on the stack alone, \
                  takes no lock and allocates nothing, as `pre_exec` demands"
    )]
    // SAFETY: see the reason above.
    unsafe {
        child.pre_exec(enter);
    }
    match child.spawn() {
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::CANCELED.raw_os_error()) => {}
        Err(error) => return Err(error),
        Ok(mut child) => {
            child.kill()?;
            child.wait()?;
            return Err(io::Error::other("the helper that opens the proxy's socket went astray"));
        }
    }

    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    rustix::net::recvmsg(
        &ours,
        &mut [io::IoSliceMut::new(&mut byte)],
        &mut control,
        RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT,
    )?;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(mut descriptors) = message
            && let Some(socket) = descriptors.next()
        {
            return Ok(TcpListener::from(socket));
        }
    }
    Err(io::Error::other("the proxy's socket did not arrive"))
}

/// The user namespace that owns a network namespace. It is not always the one the process is in: `bwrap
/// --disable-userns` moves on into a second one.
fn owner(network: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    /// `NS_GET_USERNS` of `<linux/nsfs.h>`, `_IO(0xb7, 1)`, the same on every architecture that Rust runs on but
    /// those (mips, powerpc, sparc) where `_IO` sets a bit of its own; there the call fails and nothing is opened.
    const NS_GET_USERNS: u32 = 0xb701;
    #[expect(
        unsafe_code,
        reason = "no library wraps this ioctl; it takes no argument and gives a new descriptor"
    )]
    // SAFETY: the descriptor is open, the request has no pointer argument, and a result that is not negative is a
    // descriptor that nobody else owns.
    unsafe {
        let raw = libc::ioctl(network.as_raw_fd(), libc::Ioctl::from(NS_GET_USERNS), 0);
        if raw < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(OwnedFd::from_raw_fd(raw))
    }
}
