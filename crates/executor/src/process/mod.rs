//! Starting processes, and the few things that only the operating system can do.
//!
//! `PR_SET_PDEATHSIG`, which `bwrap --die-with-parent` relies on, fires when the *thread* that started the
//! child ends, not the process (prctl(2)). A command started from a pool thread was killed when the pool
//! retired that thread. So everything is started by one thread that lives as long as the process, or by the main
//! thread when that is the caller.

mod guard;
mod start;

use std::collections::{BTreeSet, HashSet};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, mpsc};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    Pid, PidfdFlags, Resource, Signal, WaitId, WaitIdOptions, WaitIdStatus, pidfd_open, pidfd_send_signal,
    waitid,
};
use tokio::sync::oneshot;

use crate::kill::{Family, Tree};
pub(crate) use guard::shortcoming as guard_shortcoming;

/// A process about to be started.
#[derive(Debug)]
pub(crate) struct Launch {
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<OsString>,
    pub(crate) environment: Vec<(OsString, OsString)>,
    pub(crate) directory: PathBuf,
    /// Standard input, output and error.
    pub(crate) streams: [OwnedFd; 3],
    /// Descriptors that the program keeps, under the numbers they have here. Every other one is closed.
    pub(crate) keep: Vec<OwnedFd>,
    /// Control groups (their `cgroup.procs`) that the process enters before it executes the program.
    pub(crate) groups: Vec<OwnedFd>,
    /// Limits that the process sets on itself.
    pub(crate) resources: Vec<(Resource, u64)>,
    /// Closed only once the process has ended or been killed.
    pub(crate) hold: Option<Hold>,
    /// What ends everything that the process starts, should it be dropped unfinished.
    pub(crate) tree: Option<Tree>,
    /// Whether the process leads a session of its own.
    pub(crate) session: bool,
    /// Whether standard input is a terminal that the process is to control, at the head of a session of its own.
    pub(crate) terminal: bool,
    /// Whether the process goes on when this one ends.
    pub(crate) outlives: bool,
}

/// Our ends of bubblewrap's pipes, kept open until the command is let go.
#[derive(Debug)]
pub(crate) struct Hold {
    /// The sandbox waits until something is written here, and for ever if nothing is; see [`block`].
    pub(crate) block: OwnedFd,
    /// Where bubblewrap reports. Closing it early would end bubblewrap by SIGPIPE, and not its child.
    pub(crate) status: OwnedFd,
}

/// A started process together with what its owner holds on to; killed and waited for in the background when
/// dropped unfinished.
#[derive(Debug)]
pub(crate) struct Started {
    pid: u32,
    /// Whether it has been waited for.
    finished: bool,
    /// See [`Launch::hold`].
    pub(crate) hold: Option<Hold>,
    /// See [`Launch::tree`].
    pub(crate) tree: Option<Tree>,
    /// Readable once the process has ended.
    pub(crate) handle: OwnedFd,
}

type Reply = oneshot::Sender<io::Result<Started>>;

fn spawner() -> io::Result<&'static mpsc::Sender<(Launch, Reply)>> {
    static SPAWNER: OnceLock<Result<mpsc::Sender<(Launch, Reply)>, io::ErrorKind>> = OnceLock::new();
    SPAWNER
        .get_or_init(|| {
            let (sender, receiver) = mpsc::channel::<(Launch, Reply)>();
            std::thread::Builder::new()
                .name("cmdgate-spawn".to_owned())
                .spawn(move || {
                    // The sender is never dropped, so this loop never ends.
                    while let Ok((launch, reply)) = receiver.recv() {
                        // A caller that has gone away drops the process, which ends it.
                        drop(reply.send(launch.start()));
                    }
                })
                .map(|_| sender)
                .map_err(|error| error.kind())
        })
        .as_ref()
        .map_err(|&kind| io::Error::from(kind))
}

/// Starts a process from a thread that lives as long as this process.
pub(crate) async fn spawn(launch: Launch) -> io::Result<Started> {
    // The main thread does: when it returns, the process ends. That spares changing to the other thread and back.
    if rustix::thread::gettid() == rustix::process::getpid() {
        return launch.start();
    }
    let (reply, answer) = oneshot::channel();
    spawner()?.send((launch, reply)).map_err(|_| io::Error::other("the spawning thread is gone"))?;
    answer.await.map_err(|_| io::Error::other("the spawning thread is gone"))?
}

impl Launch {
    fn start(mut self) -> io::Result<Started> {
        if self.hold.is_some() || self.tree.is_some() {
            guard::stand_by()?;
        }
        if self.hold.is_some() {
            self.resources.extend(Family::own().map(Family::resource));
        }
        let (pid, handle) = start::start(&self)?;
        registry().insert(pid.as_raw_nonzero().get());
        let pid = pid.as_raw_nonzero().get().cast_unsigned();
        let mut tree = self.tree;
        if let Some(tree) = &mut tree {
            tree.started(pid);
        }
        Ok(Started { pid, finished: false, hold: self.hold, tree, handle })
    }
}

/// The processes that were started here and have not been waited for.
fn registry() -> MutexGuard<'static, HashSet<i32>> {
    static STARTED: OnceLock<Mutex<HashSet<i32>>> = OnceLock::new();
    STARTED.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
}

fn forget(pid: u32) {
    if let Ok(pid) = i32::try_from(pid) {
        registry().remove(&pid);
    }
}

/// The children of this process that were not started here, but by the program around or handed on as orphans; `None`
/// where the kernel does not list them (proc_tid_children(5)).
pub(crate) fn children_from_elsewhere() -> Option<BTreeSet<i32>> {
    let mut list = Vec::with_capacity(4096);
    for task in std::fs::read_dir("/proc/self/task").ok()?.filter_map(Result::ok) {
        // Read through an adapter, which does not ask the file for its size: that costs as much as reading it.
        let read = File::open(task.path().join("children"))
            .and_then(|file| file.take(u64::MAX).read_to_end(&mut list));
        list.push(b' ');
        match read {
            Ok(_) => {}
            // A thread that has just ended has handed its children on.
            Err(_) if !task.path().exists() => {}
            Err(_) => return None,
        }
    }
    let list = std::str::from_utf8(&list).ok()?;
    let started = registry();
    Some(
        list.split_ascii_whitespace()
            .filter_map(|pid| pid.parse().ok())
            .filter(|pid| !started.contains(pid))
            .collect(),
    )
}

/// Whether this process has no child at all, neither living nor ended.
pub(crate) fn childless() -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    matches!(waitid(WaitId::All, options), Err(Errno::CHILD))
}

/// Whether a child of this process has ended, all its threads included: what `/proc` calls a zombie may be a process
/// whose first thread alone has ended. What is no child of this process has ended too, and been waited for.
pub(crate) fn has_ended(child: i32) -> bool {
    let Some(pid) = Pid::from_raw(child) else { return true };
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    loop {
        match waitid(WaitId::Pid(pid), options) {
            Ok(status) => return status.is_some(),
            Err(Errno::INTR) => {}
            Err(_) => return true,
        }
    }
}

impl Started {
    /// The process number.
    pub(crate) const fn pid(&self) -> u32 {
        self.pid
    }

    /// Whether the process has not been waited for yet.
    pub(crate) const fn running(&self) -> bool {
        !self.finished
    }

    /// The status of a process that has ended; `None` while it runs, and once the status has been taken.
    pub(crate) fn finished(&mut self) -> io::Result<Option<ExitStatus>> {
        if self.finished {
            return Ok(None);
        }
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
        let status = waitid(WaitId::PidFd(self.handle.as_fd()), options)?;
        if status.is_some() {
            self.finished = true;
            forget(self.pid);
        }
        Ok(status.as_ref().map(exit_status))
    }

    /// Sends SIGKILL.
    pub(crate) fn kill(&self) {
        kill(&self.handle);
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if self.finished {
            return;
        }
        let handle = self.handle.try_clone();
        // Once the process has been killed, this only takes its entry out of the process table.
        let wait = |handle: OwnedFd, pid: u32| {
            ended_within(&handle, Duration::from_secs(5));
            reap(&handle);
            forget(pid);
        };
        match (self.hold.take(), handle, self.pid) {
            (Some(hold), Ok(handle), pid) => end_later(move || {
                end_unready(pid, &handle);
                // Not before: this is what the sandbox waits for.
                drop(hold);
                tidy_later(move || wait(handle, pid));
            }),
            (_, Ok(handle), pid) => {
                kill(&handle);
                tidy_later(move || wait(handle, pid));
            }
            (_, Err(_), _) => kill(&self.handle),
        }
    }
}

/// What wait(2) would have said (`man 2 waitid`: the status is the code, or the signal).
fn exit_status(status: &WaitIdStatus) -> ExitStatus {
    let core = if status.dumped() { 0x80 } else { 0 };
    let raw = match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => (code & 0xff) << 8,
        (None, signal) => signal.unwrap_or(0) | core,
    };
    ExitStatus::from_raw(raw)
}

/// Ends bubblewrap before it has said which process it started.
///
/// For a moment that process waits for its parent to map its user, and does not yet die with it; killing the parent
/// alone would leave it waiting for ever. So the parent is stopped first, its children are ended, and then itself.
pub(crate) fn end_unready(pid: u32, handle: &OwnedFd) {
    // Gone already is as good, here and below.
    let _ = pidfd_send_signal(handle, Signal::STOP);
    let deadline = Instant::now() + Duration::from_secs(1);
    let options =
        WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    while matches!(waitid(WaitId::PidFd(handle.as_fd()), options), Ok(None)) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_micros(200));
    }
    let mut children = Vec::new();
    for child in children_of(pid) {
        if let Ok(Some(child_handle)) = open_process(child)
            && parent_of(child).and_then(|parent| u32::try_from(parent).ok()) == Some(pid)
        {
            kill(&child_handle);
            children.push(child_handle);
        }
    }
    kill(handle);
    if let Ok(parent) = handle.try_clone() {
        tidy_later(move || {
            // Where this process adopts orphans they are handed to it once their parent has ended.
            ended_within(&parent, Duration::from_secs(5));
            children.iter().filter(|child| ended_within(child, Duration::from_secs(5))).for_each(reap);
        });
    }
}

/// The children of a process: proc_tid_children(5), or a search where the kernel lacks it.
fn children_of(pid: u32) -> Vec<i32> {
    if let Ok(list) = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")) {
        return list.split_ascii_whitespace().filter_map(|child| child.parse().ok()).collect();
    }
    let Ok(processes) = std::fs::read_dir("/proc") else { return Vec::new() };
    processes
        .filter_map(Result::ok)
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
        .filter(|&child| parent_of(child).and_then(|parent| u32::try_from(parent).ok()) == Some(pid))
        .collect()
}

/// Sends SIGKILL to a process by its descriptor; a process that is gone is as good.
pub(crate) fn kill(handle: &OwnedFd) {
    // ESRCH is the only error that a descriptor of one's own child can give.
    let _ = pidfd_send_signal(handle, Signal::KILL);
}

/// A descriptor for a process that was started by someone else; `None` when it is gone.
pub(crate) fn open_process(pid: i32) -> io::Result<Option<OwnedFd>> {
    let Some(pid) = Pid::from_raw(pid) else { return Ok(None) };
    match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(handle) => Ok(Some(handle)),
        Err(Errno::SRCH) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The process number of a process's parent.
pub(crate) fn parent_of(pid: i32) -> Option<i32> {
    after_name(pid)?.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Whether there is such a process and it has not ended.
pub(crate) fn lives(pid: i32) -> bool {
    after_name(pid).is_some_and(|rest| !rest.trim_start().starts_with(['Z', 'X']))
}

/// What proc_pid_stat(5) says from the third field on: the state, the parent, and so on.
fn after_name(pid: i32) -> Option<String> {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    let end = stat.iter().rposition(|&byte| byte == b')')?;
    String::from_utf8(stat.get(end + 1..)?.to_vec()).ok()
}

/// Takes an ended process out of the process table if it was handed to this process as an orphan, which
/// happens when this process adopts orphans (prctl(2), `PR_SET_CHILD_SUBREAPER`).
pub(crate) fn reap(handle: &OwnedFd) {
    // ECHILD: somebody else's child, and theirs to reap.
    let _ = waitid(WaitId::PidFd(handle.as_fd()), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
}

/// Waits, blocking, until a process has ended; false when the time is up first.
pub(crate) fn ended_within(handle: &OwnedFd, limit: Duration) -> bool {
    let deadline = Instant::now() + limit;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = rustix::event::Timespec::try_from(left).ok();
        match poll(&mut [PollFd::new(handle, PollFlags::IN)], timeout.as_ref()) {
            Ok(0) => return false,
            Ok(_) => return true,
            Err(Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}

type Work = Box<dyn FnOnce() + Send>;

/// Ends something on a thread of its own, for destructors that may not block. What is done here must be quick:
/// other kills wait behind it.
pub(crate) fn end_later(work: impl FnOnce() + Send + 'static) {
    static WORKER: OnceLock<Option<mpsc::Sender<Work>>> = OnceLock::new();
    hand_over(&WORKER, "cmdgate-end", Box::new(work));
}

/// Tidies up after something that is being ended: may wait, and runs in turn.
pub(crate) fn tidy_later(work: impl FnOnce() + Send + 'static) {
    static WORKER: OnceLock<Option<mpsc::Sender<Work>>> = OnceLock::new();
    hand_over(&WORKER, "cmdgate-tidy", Box::new(work));
}

fn hand_over(worker: &'static OnceLock<Option<mpsc::Sender<Work>>>, name: &str, work: Work) {
    let sender = worker.get_or_init(|| {
        let (sender, receiver) = mpsc::channel::<Work>();
        let started = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            while let Ok(work) = receiver.recv() {
                work();
            }
        });
        started.ok().map(|_| sender)
    });
    match sender {
        Some(sender) => {
            if let Err(mpsc::SendError(work)) = sender.send(work) {
                work();
            }
        }
        None => work(),
    }
}

/// A pipe: the end to read and the end to write, both closed in other programs.
pub(crate) fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(pipe_with(PipeFlags::CLOEXEC)?)
}

/// The pipe that a sandbox waits at: the end to read, and the end to write.
///
/// What reads it holds its other end as well. Otherwise the sandbox would go on when the writer ends, and execute a
/// command that has no owner any more.
pub(crate) fn block() -> io::Result<(OwnedFd, OwnedFd)> {
    let (reader, writer) = pipe()?;
    // fifo(7): opening both ends at once does not wait.
    let both = File::options().read(true).write(true).open(format!("/proc/self/fd/{}", number(&reader)))?;
    Ok((both.into(), writer))
}

/// A pipe with something in it, its writing end closed. Only for what fits: 64 KiB.
pub(crate) fn filled_pipe(bytes: &[u8]) -> io::Result<OwnedFd> {
    let (reader, writer) = pipe()?;
    let mut writer = File::from(writer);
    writer.write_all(bytes)?;
    Ok(reader)
}

/// An anonymous file in memory with something in it, sealed against change.
pub(crate) fn sealed_file(name: &str, bytes: &[u8]) -> io::Result<OwnedFd> {
    let file = rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    let mut file = File::from(file);
    file.write_all(bytes)?;
    io::Seek::rewind(&mut file)?;
    rustix::fs::fcntl_add_seals(
        &file,
        SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL,
    )?;
    Ok(file.into())
}

/// The null device, for reading.
pub(crate) fn null() -> io::Result<OwnedFd> {
    Ok(File::open("/dev/null")?.into())
}

/// A descriptor's number as a program argument.
pub(crate) fn number(descriptor: &OwnedFd) -> i32 {
    descriptor.as_raw_fd()
}

/// Makes this process the parent of orphaned descendants (prctl(2), `PR_SET_CHILD_SUBREAPER`), so that what a
/// command leaves behind can be found, ended and taken out of the process table.
pub(crate) fn adopt_orphans() -> io::Result<()> {
    Ok(rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?)
}
