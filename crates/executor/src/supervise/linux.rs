//! Watching bubblewrap, and a command without a sandbox, on Linux.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::unix::pipe;

use super::{Control, End, Ended, KILL_GRACE, Output, readable};
use crate::process::{self, Launch, Started};

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
    let mut status = if end == End::Exited { leader.finished()? } else { None };
    if let Some(tree) = &mut leader.tree {
        if status.is_some() {
            tree.leader_waited_for();
        }
        kill_incomplete = output.while_awaiting(tree.end(), KILL_GRACE).await.is_none();
    }
    if status.is_none() {
        if output.while_awaiting(handle.readable(), KILL_GRACE).await.is_none() {
            kill_incomplete = true;
        }
        status = leader.finished()?;
    }
    output.drain().await;
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
