//! Starting processes, and the few things that only the operating system can do.
//!
//! `PR_SET_PDEATHSIG`, which `bwrap --die-with-parent` relies on, fires when the *thread* that started the
//! child ends, not the process (prctl(2)). A command started from a pool thread was killed when the pool
//! retired that thread. So everything is started by one thread that lives as long as the process.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, mpsc};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    Pid, PidfdFlags, Resource, Rlimit, Signal, WaitId, WaitIdOptions, pidfd_open, pidfd_send_signal, waitid,
};
use tokio::sync::oneshot;

use crate::bounds::lowered;
use crate::kill::Tree;

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
}

/// Our ends of bubblewrap's pipes, kept open until the command is let go.
#[derive(Debug)]
pub(crate) struct Hold {
    /// The sandbox waits until something is written here, or until it is closed.
    pub(crate) block: OwnedFd,
    /// Where bubblewrap reports. Closing it early would end bubblewrap by SIGPIPE, and not its child.
    pub(crate) status: OwnedFd,
}

/// A started process together with what its owner holds on to; killed and waited for in the background when
/// dropped unfinished.
#[derive(Debug)]
pub(crate) struct Started {
    child: Option<Child>,
    pid: u32,
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

/// Starts a process from the thread that never ends.
pub(crate) async fn spawn(launch: Launch) -> io::Result<Started> {
    let (reply, answer) = oneshot::channel();
    spawner()?.send((launch, reply)).map_err(|_| io::Error::other("the spawning thread is gone"))?;
    answer.await.map_err(|_| io::Error::other("the spawning thread is gone"))?
}

impl Launch {
    fn start(self) -> io::Result<Started> {
        let [input, output, error] = self.streams;
        let mut command = Command::new(&self.program);
        command
            .args(&self.arguments)
            .env_clear()
            .envs(self.environment)
            .current_dir(&self.directory)
            .stdin(Stdio::from(input))
            .stdout(Stdio::from(output))
            .stderr(Stdio::from(error));
        let limits = self
            .resources
            .into_iter()
            .map(|(resource, limit)| (resource, lowered(resource, limit)))
            .collect();
        before_exec(&mut command, self.keep, self.groups, limits, [self.session, self.terminal]);
        let child = command.spawn()?;
        let pid = pid_of(&child)?;
        registry().insert(pid.as_raw_nonzero().get());
        match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(handle) => {
                let mut tree = self.tree;
                if let Some(tree) = &mut tree {
                    tree.started(child.id());
                }
                Ok(Started { pid: child.id(), child: Some(child), hold: self.hold, tree, handle })
            }
            Err(error) => {
                let mut child = child;
                // Nothing can be done about a failing kill of a child that was only just started.
                let _ = child.kill();
                let _ = child.wait();
                forget(child.id());
                Err(io::Error::new(
                    io::Error::from(error).kind(),
                    "pidfd_open failed; Linux 5.11 or later is needed",
                ))
            }
        }
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

/// Whether a process was started here and has not been waited for: not an orphan that was handed to us.
pub(crate) fn started_here(pid: i32) -> bool {
    registry().contains(&pid)
}

/// The children of this process, whichever thread started them; `None` where the kernel does not list them
/// (proc_tid_children(5)).
pub(crate) fn own_children() -> Option<Vec<i32>> {
    let mut children = Vec::new();
    for task in std::fs::read_dir("/proc/self/task").ok()?.filter_map(Result::ok) {
        match std::fs::read_to_string(task.path().join("children")) {
            Ok(list) => {
                children.extend(list.split_ascii_whitespace().filter_map(|pid| pid.parse::<i32>().ok()));
            }
            // A thread that has just ended has handed its children on.
            Err(_) if !task.path().exists() => {}
            Err(_) => return None,
        }
    }
    Some(children)
}

fn pid_of(child: &Child) -> io::Result<Pid> {
    i32::try_from(child.id())
        .ok()
        .and_then(Pid::from_raw)
        .ok_or_else(|| io::Error::other("the system gave an impossible process number"))
}

/// Arranges what happens between fork and exec. The closure makes system calls only: no allocation, no lock,
/// as fork(2) demands of a program with threads.
#[expect(
    unsafe_code,
    reason = "std marks pre_exec unsafe, and close_range has no safe binding in rustix or std"
)]
fn before_exec(
    command: &mut Command,
    keep: Vec<OwnedFd>,
    groups: Vec<OwnedFd>,
    limits: Vec<(Resource, Rlimit)>,
    [session, terminal]: [bool; 2],
) {
    let step = move || {
        for group in &groups {
            rustix::io::write(group, b"0")?;
        }
        for (resource, limit) in &limits {
            rustix::process::setrlimit(*resource, *limit)?;
        }
        if terminal {
            crate::pty::take_control()?;
        } else if session {
            rustix::process::setsid()?;
        }
        // bubblewrap sets this itself, a little later.
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        // bubblewrap hands on whatever it inherits, and so does bash: close all but what is meant.
        // SAFETY: close_range(2) with CLOSE_RANGE_CLOEXEC only sets a flag on descriptors of this process.
        let closed =
            unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC) };
        if closed != 0 {
            return Err(io::Error::last_os_error());
        }
        for kept in &keep {
            rustix::io::fcntl_setfd(kept, rustix::io::FdFlags::empty())?;
        }
        Ok(())
    };
    // SAFETY: the closure is async-signal-safe, see above: it reads memory that was allocated before the fork.
    unsafe { command.pre_exec(step) };
}

impl Started {
    /// The process number.
    pub(crate) const fn pid(&self) -> u32 {
        self.pid
    }

    /// Whether the process has not been waited for yet.
    pub(crate) const fn running(&self) -> bool {
        self.child.is_some()
    }

    /// The status of a process that has ended.
    pub(crate) fn finished(&mut self) -> io::Result<Option<ExitStatus>> {
        match self.child.as_mut() {
            None => Ok(None),
            Some(child) => {
                let status = child.try_wait()?;
                if status.is_some() {
                    self.child = None;
                    forget(self.pid);
                }
                Ok(status)
            }
        }
    }

    /// Sends SIGKILL.
    pub(crate) fn kill(&self) {
        kill(&self.handle);
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        let handle = self.handle.try_clone();
        // Once the process has been killed, this only takes its entry out of the process table.
        let mut wait = move |handle: &OwnedFd| {
            ended_within(handle, Duration::from_secs(5));
            let _ = child.try_wait();
            forget(child.id());
        };
        match (self.hold.take(), handle, self.pid) {
            (Some(hold), Ok(handle), pid) => end_later(move || {
                end_unready(pid, &handle);
                // Not before: this is what the sandbox waits for.
                drop(hold);
                tidy_later(move || wait(&handle));
            }),
            (_, Ok(handle), _) => {
                kill(&handle);
                tidy_later(move || wait(&handle));
            }
            (_, Err(_), _) => kill(&self.handle),
        }
    }
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
    for child in children_of(pid) {
        if let Ok(Some(child_handle)) = open_process(child)
            && parent_of(child).and_then(|parent| u32::try_from(parent).ok()) == Some(pid)
        {
            kill(&child_handle);
        }
    }
    kill(handle);
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

/// The process number of a process's parent (the fourth field of proc_pid_stat(5)).
pub(crate) fn parent_of(pid: i32) -> Option<i32> {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    let after_name = stat.iter().rposition(|&byte| byte == b')')?;
    let rest = std::str::from_utf8(stat.get(after_name + 1..)?).ok()?;
    rest.split_ascii_whitespace().nth(1)?.parse().ok()
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
