//! Watching a started command to its end: output, deadline, cancellation, and the proof that nothing is left.

use std::future::Future;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::unix::pipe;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use crate::output::{Capture, Captured, Chunk, Cursor, Keep, OutputMode, READ_SIZE, Stream};
use crate::process::{self, Launch, Started};

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
    fn push(&mut self, bytes: &[u8]) {
        if let Some(capture) = &mut self.capture {
            capture.push(bytes);
        }
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
    pub(crate) fn reset(&self, mode: &OutputMode) {
        let fresh = Self::new(mode);
        std::mem::swap(&mut *self.stdout(), &mut *fresh.stdout());
        std::mem::swap(&mut *self.stderr(), &mut *fresh.stderr());
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
            buffer: vec![0; READ_SIZE],
        })
    }

    /// The controlling end of a terminal in place of two pipes; everything is taken for standard output.
    pub(crate) fn terminal(controller: OwnedFd, captures: Arc<Captures>) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&controller, true)?;
        // To tokio it is as good as a pipe: it can be waited for and read.
        let stdout = Some(pipe::Receiver::from_owned_fd_unchecked(controller)?);
        Ok(Self { stdout, stderr: None, captures, buffer: vec![0; READ_SIZE] })
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

/// Reads until the pipe is empty or the turn is over; false at the end of the stream.
fn read_some<'a>(
    receiver: &pipe::Receiver,
    buffer: &mut [u8],
    side: impl Fn() -> MutexGuard<'a, Side>,
) -> bool {
    for _ in 0..READS_PER_TURN {
        match receiver.try_read(buffer) {
            Ok(0) => return false,
            Ok(count) => {
                if let Some(bytes) = buffer.get(..count) {
                    side().push(bytes);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return false,
        }
    }
    true
}

/// bubblewrap's report on `--json-status-fd`: one JSON document per line.
#[derive(Debug)]
struct Report {
    receiver: Option<pipe::Receiver>,
    text: Vec<u8>,
    child: Option<i32>,
    exit_code: Option<i32>,
}

impl Report {
    fn new(status: Option<OwnedFd>) -> io::Result<Self> {
        let receiver = status.map(pipe::Receiver::from_owned_fd).transpose()?;
        Ok(Self { receiver, text: Vec::new(), child: None, exit_code: None })
    }

    /// Waits for the next piece of the report.
    async fn turn(&mut self) {
        let _ = readable(self.receiver.as_ref()).await;
        self.read();
    }

    fn read(&mut self) {
        let Some(receiver) = &self.receiver else { return };
        let mut buffer = [0; 1024];
        loop {
            match receiver.try_read(&mut buffer) {
                Ok(0) => {
                    self.receiver = None;
                    break;
                }
                Ok(count) => self.text.extend_from_slice(buffer.get(..count).unwrap_or_default()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => {
                    self.receiver = None;
                    break;
                }
            }
        }
        self.parse();
    }

    fn parse(&mut self) {
        for document in serde_json::Deserializer::from_slice(&self.text).into_iter::<serde_json::Value>() {
            // The last document may be half written yet.
            let Ok(document) = document else { break };
            let number = |key: &str| {
                document.get(key).and_then(serde_json::Value::as_i64).and_then(|n| i32::try_from(n).ok())
            };
            self.child = self.child.or_else(|| number("child-pid"));
            self.exit_code = self.exit_code.or_else(|| number("exit-code"));
        }
    }
}

/// A running sandbox. Dropping it kills everything inside.
#[derive(Debug)]
struct Cage {
    monitor: Started,
    /// The first process of the PID namespace: when it is gone, so is everything.
    first: Option<Arc<OwnedFd>>,
}

impl Cage {
    fn kill(&self) {
        match &self.first {
            Some(first) => process::kill(first),
            None => process::end_unready(self.monitor.pid(), &self.monitor.handle),
        }
    }
}

impl Drop for Cage {
    fn drop(&mut self) {
        if let Some(first) = self.first.take() {
            process::kill(&first);
            if self.monitor.running() {
                process::tidy_later(move || {
                    if process::ended_within(&first, KILL_GRACE) {
                        process::reap(&first);
                    }
                });
            } else {
                process::reap(&first);
            }
        }
    }
}

/// Runs bubblewrap to its end. `release` is called once the sandbox stands and before the command is
/// executed; its error ends the run.
pub(crate) async fn confined(
    launch: Launch,
    mut output: Output,
    control: &Control,
    release: impl FnOnce(i32) -> io::Result<()>,
) -> io::Result<Ended> {
    let status = launch.hold.as_ref().map(|hold| hold.status.try_clone()).transpose()?;
    let mut report = Report::new(status)?;
    let mut cage = Cage { monitor: process::spawn(launch).await?, first: None };
    let monitor = watch(cage.monitor.handle.try_clone()?)?;
    let mut release = Some(release);

    let stop = control.stop();
    tokio::pin!(stop);
    let end = loop {
        tokio::select! {
            biased;
            end = &mut stop => break end,
            _ = monitor.readable() => break End::Exited,
            () = report.turn(), if report.receiver.is_some() => {
                if let Some(child) = report.child
                    && let Some(release) = release.take()
                    && adopt(&mut cage, child)?
                {
                    release(child)?;
                    if let Some(hold) = cage.monitor.hold.take() {
                        // EPIPE: the sandbox has failed meanwhile, which its exit will tell.
                        let _ = rustix::io::write(&hold.block, b"1");
                    }
                }
            }
            () = output.turn(), if output.open() => {}
        }
    };

    let mut kill_incomplete = false;
    if end != End::Exited {
        report.read();
        if cage.first.is_none()
            && let Some(child) = report.child
        {
            // It may be gone by now, and then there is nothing to kill.
            let _ = adopt(&mut cage, child);
        }
        cage.kill();
        if output.while_awaiting(monitor.readable(), KILL_GRACE).await.is_none() {
            kill_incomplete = true;
            cage.monitor.kill();
            output.while_awaiting(monitor.readable(), KILL_GRACE).await;
        }
    }
    // The monitor leaves before the namespace is empty; its first process is the last to go.
    if let Some(first) = cage.first.clone() {
        let first = watch(first)?;
        if output.while_awaiting(first.readable(), KILL_GRACE).await.is_none() {
            process::kill(first.get_ref());
            if output.while_awaiting(first.readable(), KILL_GRACE).await.is_none() {
                kill_incomplete = true;
            }
        }
    }
    output.drain().await;
    report.read();
    let status = cage.monitor.finished()?;
    Ok(Ended { end, status, reported: report.exit_code, kill_incomplete })
}

/// Takes hold of the sandbox's first process, which bubblewrap names in its report. False when it is gone by
/// now: the sandbox has failed, and the monitor is about to say so.
fn adopt(cage: &mut Cage, child: i32) -> io::Result<bool> {
    let Some(handle) = process::open_process(child)? else { return Ok(false) };
    // A number can be given to another process between the report and here: only the monitor's child is ours.
    let parent = process::parent_of(child).and_then(|parent| u32::try_from(parent).ok());
    if parent != Some(cage.monitor.pid()) {
        return Ok(false);
    }
    cage.first = Some(Arc::new(handle));
    Ok(true)
}

/// Runs a command without a sandbox to its end, and then ends whatever it left behind.
pub(crate) async fn unconfined(launch: Launch, mut output: Output, control: &Control) -> io::Result<Ended> {
    let mut leader = process::spawn(launch).await?;
    let handle = watch(leader.handle.try_clone()?)?;
    let stop = control.stop();
    tokio::pin!(stop);
    let end = loop {
        tokio::select! {
            biased;
            end = &mut stop => break end,
            _ = handle.readable() => break End::Exited,
            () = output.turn(), if output.open() => {}
        }
    };
    let mut kill_incomplete = false;
    if let Some(tree) = &mut leader.tree {
        kill_incomplete = output.while_awaiting(tree.end(), KILL_GRACE).await.is_none();
    }
    if output.while_awaiting(handle.readable(), KILL_GRACE).await.is_none() {
        kill_incomplete = true;
    }
    output.drain().await;
    let status = leader.finished()?;
    Ok(Ended { end, status, reported: None, kill_incomplete })
}

/// Runs a program that is trusted to end, for its output. `None` when it did not in time.
pub(crate) async fn simple(
    launch: Launch,
    mut output: Output,
    limit: Duration,
) -> io::Result<Option<ExitStatus>> {
    let mut started = process::spawn(launch).await?;
    let handle = watch(started.handle.try_clone()?)?;
    if output.while_awaiting(handle.readable(), limit).await.is_none() {
        return Ok(None);
    }
    output.drain().await;
    started.finished()
}

/// Makes a process descriptor something to wait for: it becomes readable when the process has ended.
#[allow(
    deprecated,
    reason = "the constructor is discouraged for types that may give out another descriptor later; these own theirs"
)]
fn watch<T: AsRawFd + Owning>(handle: T) -> io::Result<AsyncFd<T>> {
    AsyncFd::with_interest(handle, Interest::READABLE)
}

/// Types that give out one and the same descriptor for as long as they live.
trait Owning {}
impl Owning for OwnedFd {}
impl Owning for Arc<OwnedFd> {}

/// The code or signal of a process that was started directly.
pub(crate) fn code_or_signal(status: ExitStatus) -> Result<i32, i32> {
    match (status.code(), status.signal()) {
        (Some(code), _) => Ok(code),
        (None, Some(signal)) => Err(signal),
        (None, None) => Ok(status.into_raw()),
    }
}
