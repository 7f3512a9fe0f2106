//! Opening a pseudo terminal, reading it, typing into it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::pin::Pin;
use std::task::{Context, Poll};

use rustix::fs::OFlags;
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{
    LocalModes, OptionalActions, OutputModes, Winsize, tcgetattr, tcsetattr, tcsetwinsize,
};
use tokio::io::{AsyncRead, AsyncWriteExt as _, ReadBuf};
use tokio::net::unix::pipe;

use super::TerminalSize;

/// A new pseudo terminal, both ends still here. Neither end is handed to other programs by accident: both are
/// close-on-exec.
#[derive(Debug)]
pub struct Pty {
    controller: OwnedFd,
    terminal: OwnedFd,
}

impl Pty {
    /// Opens a pseudo terminal.
    ///
    /// # Errors
    /// No more terminals (`/proc/sys/kernel/pty/max`), or no `/dev/ptmx` here.
    pub fn open(size: TerminalSize) -> io::Result<Self> {
        let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        grantpt(&controller)?;
        unlockpt(&controller)?;
        // By descriptor and not by name: in a container the name may belong to another `/dev/pts`.
        let terminal =
            ioctl_tiocgptpeer(&controller, OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        let mut settings = tcgetattr(&terminal)?;
        settings.output_modes.remove(OutputModes::ONLCR);
        settings.local_modes.remove(LocalModes::ECHO);
        tcsetattr(&terminal, OptionalActions::Now, &settings)?;
        set_size(controller.as_fd(), size)?;
        Ok(Self { controller, terminal })
    }

    /// The controlling end, and the terminal's end three times: standard input, output and error of the command.
    ///
    /// The output ends when the last copy of the terminal's end is closed, these three among them.
    pub fn split(self) -> io::Result<(OwnedFd, [OwnedFd; 3])> {
        let streams = [self.terminal.try_clone()?, self.terminal.try_clone()?, self.terminal];
        Ok((self.controller, streams))
    }

    /// The three standard streams, while this keeps both ends: see [`split`](Self::split).
    pub fn streams(&self) -> io::Result<[OwnedFd; 3]> {
        Ok([self.terminal.try_clone()?, self.terminal.try_clone()?, self.terminal.try_clone()?])
    }

    /// Keeps the controlling end only. Call it once the command has been started: as long as the terminal's end is open
    /// here too, the output never ends.
    ///
    /// # Errors
    /// There is no tokio runtime with I/O here.
    pub fn into_reader(self) -> io::Result<Terminal> {
        tokio::runtime::Handle::try_current().map_err(io::Error::other)?;
        let flags = rustix::fs::fcntl_getfl(&self.controller)?;
        rustix::fs::fcntl_setfl(&self.controller, flags | OFlags::NONBLOCK)?;
        // To tokio the controlling end is as good as a pipe: it can be waited for, read and written.
        let input = pipe::Sender::from_owned_fd_unchecked(self.controller.try_clone()?)?;
        let output = pipe::Receiver::from_owned_fd_unchecked(self.controller)?;
        Ok(Terminal { input, output })
    }
}

/// Makes standard input the controlling terminal of this process, which leads a session of its own from then on.
/// For between fork and exec: makes system calls only.
pub fn take_control() -> io::Result<()> {
    rustix::process::setsid()?;
    Ok(rustix::process::ioctl_tiocsctty(rustix::stdio::stdin())?)
}

/// How many readers find the end of the input after [`end_input`].
pub const INPUT_ENDS: usize = 64;

/// Types the end of the input [`INPUT_ENDS`] times, before anybody reads. A terminal has no end of its own; this stands
/// for the null device that other commands read. A program that takes single keys sees as many Ctrl-D.
pub fn end_input(controller: &OwnedFd) -> io::Result<()> {
    // End of transmission, which a terminal that gives out whole lines takes for the end (termios(3), `VEOF`).
    let written = rustix::io::write(controller, &[4; INPUT_ENDS])?;
    if written == INPUT_ENDS { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
}

fn set_size(controller: BorrowedFd<'_>, size: TerminalSize) -> io::Result<()> {
    let size = Winsize { ws_row: size.rows, ws_col: size.columns, ws_xpixel: 0, ws_ypixel: 0 };
    Ok(tcsetwinsize(controller, size)?)
}

/// The controlling end: reads what the command writes, and can type.
///
/// The output ends when no process holds the terminal any more. Dropping this hangs the terminal up (`SIGHUP`).
#[derive(Debug)]
pub struct Terminal {
    input: pipe::Sender,
    output: pipe::Receiver,
}

impl Terminal {
    /// Types these bytes. `\x04` on an empty line ends the input of a program that reads lines; a terminal never ends
    /// it by itself, as the null device does.
    ///
    /// # Errors
    /// The command reads nothing and the terminal's buffer (4 KiB) is full: then this waits, so bound it by a timeout.
    pub async fn type_in(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.input.write_all(bytes).await
    }

    /// Changes the size; the command is told (`SIGWINCH`).
    pub fn resize(&self, size: TerminalSize) -> io::Result<()> {
        set_size(self.output.as_fd(), size)
    }
}

impl AsyncRead for Terminal {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.output).poll_read(context, buffer).map(|result| {
            result.or_else(|error| {
                // What Linux says when the last holder of the terminal's end has gone.
                let hung_up = error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error());
                if hung_up { Ok(()) } else { Err(error) }
            })
        })
    }
}
