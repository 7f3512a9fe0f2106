//! Watching a started command to its end: output, deadline, cancellation, and the proof that nothing is left.

#[cfg(any(target_os = "macos", test))]
mod apple;
#[cfg(target_os = "linux")]
mod linux;

use std::future::Future;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::net::unix::pipe;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use crate::output::{Capture, Captured, Chunk, Cursor, Keep, OutputMode, READ_SIZE, Stream};

#[cfg(any(target_os = "macos", test))]
pub(crate) use self::apple::leader;
#[cfg(target_os = "linux")]
pub(crate) use self::linux::{confined, simple, unconfined};

/// How long the kernel may take to end a killed tree before it is called incomplete. A fork bomb of four
/// thousand processes was measured to need 2.6 s.
const KILL_GRACE: Duration = Duration::from_secs(5);
/// How long output may still be read once everything is known to be dead.
const DRAIN: Duration = Duration::from_millis(300);
/// Reads per turn, so that a flood on one stream delays nothing else.
const READS_PER_TURN: usize = 16;

/// The two captures of a run, shared with whoever polls it.
#[derive(Debug)]
pub(crate) struct Captures {
    stdout: Mutex<Side>,
    stderr: Mutex<Side>,
}

/// One captured stream, and how far it has been polled.
#[derive(Debug)]
pub(crate) struct Side {
    /// Taken at the end of the run.
    capture: Option<Capture>,
    cursor: Cursor,
    /// What had not been polled at the end of the run.
    rest: Chunk,
}

impl Side {
    /// Takes the next bytes; false when no more are of use.
    fn push(&mut self, bytes: &[u8]) -> bool {
        self.capture.as_mut().is_none_or(|capture| {
            capture.push(bytes);
            capture.wants_more()
        })
    }

    fn close(&mut self) {
        if let Some(capture) = &mut self.capture {
            capture.close();
        }
    }

    /// What came since the last call.
    pub(crate) fn read_new(&mut self) -> Chunk {
        match &self.capture {
            Some(capture) => capture.read_new(&mut self.cursor),
            None => std::mem::take(&mut self.rest),
        }
    }

    /// What has come so far.
    pub(crate) fn snapshot(&self, keep: Keep) -> Captured {
        self.capture.as_ref().map(|capture| capture.snapshot(keep)).unwrap_or_default()
    }

    /// Ends the capture.
    pub(crate) fn finish(&mut self, keep: Keep) -> Captured {
        self.close();
        self.rest = self.read_new();
        self.capture.take().map(|capture| capture.finish_as(keep)).unwrap_or_default()
    }
}

impl Captures {
    pub(crate) fn new(mode: &OutputMode) -> Self {
        let side = |stream| {
            Mutex::new(Side {
                capture: Some(Capture::new(mode, stream)),
                cursor: Cursor::default(),
                rest: Chunk::default(),
            })
        };
        Self { stdout: side(Stream::Stdout), stderr: side(Stream::Stderr) }
    }

    /// Forgets everything, for a second attempt after nothing was executed.
    #[cfg(target_os = "linux")]
    pub(crate) fn reset(&self, mode: &OutputMode) {
        let fresh = Self::new(mode);
        std::mem::swap(&mut *self.stdout(), &mut *fresh.stdout());
        std::mem::swap(&mut *self.stderr(), &mut *fresh.stderr());
    }

    /// Whether what comes is passed on; see [`OutputMode::echo`].
    #[cfg(target_os = "linux")]
    pub(crate) fn set_echo(&self, echo: bool) {
        for side in [&mut *self.stdout(), &mut *self.stderr()] {
            if let Some(capture) = &mut side.capture {
                capture.set_echo(echo);
            }
        }
    }

    pub(crate) fn stdout(&self) -> MutexGuard<'_, Side> {
        self.stdout.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn stderr(&self) -> MutexGuard<'_, Side> {
        self.stderr.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What ends a run before the command does.
#[derive(Debug, Clone)]
pub(crate) struct Control {
    pub(crate) deadline: Option<Instant>,
    pub(crate) cancel: CancellationToken,
}

impl Control {
    async fn stop(&self) -> End {
        let time_is_up = async {
            match self.deadline {
                Some(deadline) => sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => End::Cancelled,
            () = time_is_up => End::TimedOut,
        }
    }
}

/// Why a run is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The process that was started has ended by itself.
    Exited,
    TimedOut,
    Cancelled,
}

/// A run that is over.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) end: End,
    /// The status of the process that was started: bubblewrap's monitor, or the command itself.
    pub(crate) status: Option<ExitStatus>,
    /// The exit code in bubblewrap's report. It is there exactly when the command was executed.
    #[cfg(target_os = "linux")]
    pub(crate) reported: Option<i32>,
    pub(crate) kill_incomplete: bool,
}

/// The reading ends of the two output pipes.
#[derive(Debug)]
pub(crate) struct Output {
    stdout: Option<pipe::Receiver>,
    stderr: Option<pipe::Receiver>,
    captures: Arc<Captures>,
    buffer: Vec<u8>,
}

impl Output {
    pub(crate) fn new(stdout: OwnedFd, stderr: OwnedFd, captures: Arc<Captures>) -> io::Result<Self> {
        Ok(Self {
            stdout: Some(pipe::Receiver::from_owned_fd(stdout)?),
            stderr: Some(pipe::Receiver::from_owned_fd(stderr)?),
            captures,
            buffer: Vec::with_capacity(READ_SIZE),
        })
    }

    /// The controlling end of a terminal in place of two pipes; everything is taken for standard output.
    #[cfg(target_os = "linux")]
    pub(crate) fn terminal(controller: OwnedFd, captures: Arc<Captures>) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&controller, true)?;
        // To tokio it is as good as a pipe: it can be waited for and read.
        let stdout = Some(pipe::Receiver::from_owned_fd_unchecked(controller)?);
        Ok(Self { stdout, stderr: None, captures, buffer: Vec::with_capacity(READ_SIZE) })
    }

    const fn open(&self) -> bool {
        self.stdout.is_some() || self.stderr.is_some()
    }

    /// Waits until there is something to read and reads some of it. Pending for ever once both streams ended.
    async fn turn(&mut self) {
        // An error of the pipe itself is treated as its end below.
        tokio::select! {
            _ = readable(self.stdout.as_ref()) => {}
            _ = readable(self.stderr.as_ref()) => {}
        }
        if let Some(receiver) = &self.stdout
            && !read_some(receiver, &mut self.buffer, || self.captures.stdout())
        {
            self.stdout = None;
        }
        if let Some(receiver) = &self.stderr
            && !read_some(receiver, &mut self.buffer, || self.captures.stderr())
        {
            self.stderr = None;
        }
    }

    /// Keeps reading while something else is awaited; `None` when the limit is reached first.
    async fn while_awaiting<T>(&mut self, what: impl Future<Output = T>, limit: Duration) -> Option<T> {
        tokio::pin!(what);
        let time_is_up = sleep(limit);
        tokio::pin!(time_is_up);
        loop {
            tokio::select! {
                biased;
                value = &mut what => return Some(value),
                () = &mut time_is_up => return None,
                () = self.turn() => {}
            }
        }
    }

    /// Reads what is left in the pipes. Everything that wrote is dead, so this ends at once, unless something
    /// out of reach holds a copy of the writing end.
    async fn drain(&mut self) {
        let rest = async {
            while self.open() {
                self.turn().await;
            }
        };
        // Running out of time here is what the limit is for.
        let _ = timeout(DRAIN, rest).await;
        self.captures.stdout().close();
        self.captures.stderr().close();
    }
}

async fn readable(receiver: Option<&pipe::Receiver>) -> io::Result<()> {
    match receiver {
        Some(receiver) => receiver.readable().await,
        None => std::future::pending().await,
    }
}

/// Reads until the pipe is empty or the turn is over; false at the end of the stream, and when it could not be passed on.
/// The pipe is to be closed then: whoever writes to it gets `SIGPIPE`.
fn read_some<'a>(
    receiver: &pipe::Receiver,
    buffer: &mut Vec<u8>,
    side: impl Fn() -> MutexGuard<'a, Side>,
) -> bool {
    for _ in 0..READS_PER_TURN {
        buffer.clear();
        match receiver.try_read_buf(buffer) {
            Ok(0) => return false,
            Ok(_) => {
                if !side().push(buffer) {
                    return false;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return false,
        }
    }
    true
}

/// The code or signal of a process that was started directly.
pub(crate) fn code_or_signal(status: ExitStatus) -> Result<i32, i32> {
    match (status.code(), status.signal()) {
        (Some(code), _) => Ok(code),
        (None, Some(signal)) => Err(signal),
        (None, None) => Ok(status.into_raw()),
    }
}
