//! Running a command on macOS: a session of its own, the marker of the sandbox, and the search for what is left.
//!
//! There is no PID namespace and no subreaper there. What can be done is done: the whole session is stopped and killed,
//! with everything that descends from it or bears its mark in the environment, again and again until nothing is found.
//! A process that left the session, lost its parent and cleared its environment escapes that, which is why
//! [`KillStrength::BestEffort`](crate::KillStrength::BestEffort) is reported.
//!
//! Nothing here is peculiar to macOS but the path of `ps`, so it is compiled and tested on every Unix.

mod canary;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{self, PipeReader, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Resource, Signal, getrlimit, kill_process};
use tokio::process::{Child, Command};

#[cfg(target_os = "macos")]
pub(crate) use self::canary::{canary, ready};
use crate::limits::{Holds, LimitKind, LimitStatus, Limits};

/// The variable that marks every process of a run.
pub(crate) const MARK: &str = "CMDGATE_RUN";

/// How many descriptors are looked at before a program is executed.
const MOST_DESCRIPTORS: u64 = 65_536;
/// How long `ps` may take.
const LISTING: Duration = Duration::from_secs(2);

/// A command about to be started.
#[derive(Debug)]
pub(crate) struct Launch {
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<OsString>,
    pub(crate) environment: Vec<(OsString, OsString)>,
    pub(crate) directory: PathBuf,
    /// Standard input, output and error. Under a profile, input is the marker: see `Profile::arguments`.
    pub(crate) streams: [OwnedFd; 3],
    /// Limits that the program sets on itself.
    pub(crate) resources: Vec<(Resource, u64)>,
    /// The value of [`MARK`].
    pub(crate) mark: String,
}

/// A started command with all that belongs to it. Dropping it kills what can be reached without waiting: the session's
/// process group.
#[derive(Debug)]
pub(crate) struct Tree {
    leader: Child,
    pid: Pid,
    mark: String,
    over: bool,
}

/// Starts a command as the leader of a new session. Must be called inside a tokio runtime.
pub(crate) fn start(launch: Launch) -> io::Result<Tree> {
    let [input, output, error] = launch.streams;
    let mut command = std::process::Command::new(&launch.program);
    command
        .args(&launch.arguments)
        .env_clear()
        .envs(launch.environment)
        .env(MARK, &launch.mark)
        .current_dir(&launch.directory)
        .stdin(Stdio::from(input))
        .stdout(Stdio::from(output))
        .stderr(Stdio::from(error));
    before_exec(&mut command, launch.resources);
    let leader = Command::from(command).kill_on_drop(true).spawn()?;
    let pid = leader
        .id()
        .and_then(|pid| i32::try_from(pid).ok())
        .and_then(Pid::from_raw)
        .ok_or_else(|| io::Error::other("the system gave an impossible process number"))?;
    Ok(Tree { leader, pid, mark: launch.mark, over: false })
}

#[expect(
    unsafe_code,
    reason = "std marks pre_exec unsafe, and descriptors that are not ours can only be named by number"
)]
fn before_exec(command: &mut std::process::Command, resources: Vec<(Resource, u64)>) {
    use std::os::fd::BorrowedFd;

    use rustix::io::FdFlags;

    let most = getrlimit(Resource::Nofile).current.unwrap_or(MOST_DESCRIPTORS).min(MOST_DESCRIPTORS);
    let most = i32::try_from(most).unwrap_or(i32::MAX);
    let step = move || -> io::Result<()> {
        // A session of its own has no terminal, so that nothing can be typed into the one that we were started from.
        rustix::process::setsid()?;
        for &(resource, limit) in &resources {
            let mut bound = getrlimit(resource);
            let hard = bound.maximum.map_or(limit, |hard| hard.min(limit));
            bound.current = Some(hard);
            bound.maximum = Some(hard);
            rustix::process::setrlimit(resource, bound)?;
        }
        for number in 3..most {
            // SAFETY: the flags of whatever is open under this number are read and set; a number that is not open is
            // refused by the system (EBADF), and nothing is kept.
            let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
            if let Ok(flags) = rustix::io::fcntl_getfd(descriptor) {
                rustix::io::fcntl_setfd(descriptor, flags | FdFlags::CLOEXEC)?;
            }
        }
        Ok(())
    };
    // SAFETY: the closure makes system calls only and reads memory that was allocated before the fork.
    unsafe { command.pre_exec(step) };
}

impl Tree {
    /// Waits for the command itself.
    pub(crate) async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.leader.wait().await
    }

    /// Ends everything that can be found; true once nothing is found any more.
    pub(crate) async fn end(&mut self) -> io::Result<bool> {
        let mut pause = Duration::from_millis(1);
        loop {
            let mut stopped = BTreeSet::new();
            // What is stopped cannot fork: when a round finds nobody new, everybody is known.
            let mut rounds = 0;
            loop {
                let found = self.members().await?;
                let new: Vec<i32> = found.difference(&stopped).copied().collect();
                if new.is_empty() || rounds > 20 {
                    break;
                }
                rounds += 1;
                for pid in new {
                    signal(pid, Signal::STOP);
                    stopped.insert(pid);
                }
            }
            for &pid in &stopped {
                signal(pid, Signal::KILL);
            }
            // The leader is ours to take out of the process table; the rest is not.
            let _ = self.leader.try_wait();
            if stopped.is_empty() {
                self.over = true;
                return Ok(true);
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(50));
        }
    }

    async fn members(&self) -> io::Result<BTreeSet<i32>> {
        let list = Command::new(ps())
            .args(["axeww", "-o", "pid=,ppid=,pgid=,stat=,command="])
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .env_clear()
            .output();
        let output = tokio::time::timeout(LISTING, list)
            .await
            .map_err(|_| io::Error::other("ps gave no answer; what is left of the command is not known"))??;
        if !output.status.success() {
            return Err(io::Error::other("ps failed; what is left of the command is not known"));
        }
        Ok(members(&String::from_utf8_lossy(&output.stdout), self.pid.as_raw_nonzero().get(), &self.mark))
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        if !self.over {
            // A group that is gone is as good.
            let _ = rustix::process::kill_process_group(self.pid, Signal::KILL);
        }
    }
}

/// Whether the byte that [`Profile::arguments`](crate::sandbox::seatbelt::Profile::arguments) promises has arrived. Call
/// it once everything that could have written it has ended.
pub(crate) fn marked(marker: PipeReader) -> bool {
    // A process that got away may still hold the other end; it can write nothing that was not promised before.
    if rustix::io::ioctl_fionbio(&marker, true).is_err() {
        return false;
    }
    let mut byte = [0];
    let mut marker = marker;
    matches!(marker.read(&mut byte), Ok(1)) && byte == *b"r"
}

/// Limits that a command sets on itself, and what is to be said of each.
pub(crate) fn limits(limits: &Limits, sandboxed: bool) -> (Vec<(Resource, u64)>, Vec<LimitStatus>) {
    let mut resources = vec![(Resource::Core, 0)];
    let mut statuses =
        vec![LimitStatus { kind: LimitKind::CoreFiles, value: 0, holds: Holds::ResourceLimit }];
    for (kind, resource, limit) in [
        (LimitKind::OpenFiles, Resource::Nofile, limits.open_files),
        (LimitKind::FileSize, Resource::Fsize, limits.file_size),
        (LimitKind::Data, Resource::Data, limits.data),
        (LimitKind::CpuSeconds, Resource::Cpu, limits.cpu_seconds),
    ] {
        if let Some(limit) = limit {
            resources.push((resource, limit));
            statuses.push(LimitStatus { kind, value: limit, holds: Holds::ResourceLimit });
        }
    }
    let mut unenforced = |kind, value, reason: &str| {
        statuses.push(LimitStatus { kind, value, holds: Holds::Unenforced(reason.to_owned()) });
    };
    if let Some(limit) = limits.processes {
        unenforced(
            LimitKind::Processes,
            limit,
            "macOS counts all processes of the user, not those of one command",
        );
    }
    if let Some(limit) = limits.memory {
        unenforced(LimitKind::Memory, limit, "macOS has no control groups");
    }
    if sandboxed {
        unenforced(LimitKind::SharedMemory, limits.shared_memory, "macOS has no /dev/shm");
    }
    (resources, statuses)
}

fn signal(pid: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid) {
        // It may have ended by itself meanwhile.
        let _ = kill_process(pid, signal);
    }
}

fn ps() -> &'static Path {
    Path::new(if Path::new("/bin/ps").exists() { "/bin/ps" } else { "/usr/bin/ps" })
}

/// Who belongs to a run, in a listing of `pid ppid pgid stat command-and-environment`: the process group, what
/// descends from anybody in it, and whoever bears the mark. Zombies do not count: they cannot do anything.
fn members(listing: &str, leader: i32, mark: &str) -> BTreeSet<i32> {
    let marked = format!("{MARK}={mark}");
    let mut rows = Vec::new();
    let mut found = BTreeSet::new();
    for line in listing.lines() {
        let mut fields = line.split_ascii_whitespace();
        let mut number = || fields.next().and_then(|field| field.parse::<i32>().ok());
        let (Some(pid), Some(parent), Some(group)) = (number(), number(), number()) else { continue };
        let zombie = fields.next().is_none_or(|state| state.starts_with('Z'));
        if group == leader || fields.any(|word| word == marked) {
            found.insert(pid);
        }
        rows.push((pid, parent, zombie));
    }
    loop {
        let before = found.len();
        for &(pid, parent, _) in &rows {
            if found.contains(&parent) {
                found.insert(pid);
            }
        }
        if found.len() == before {
            break;
        }
    }
    for &(pid, _, zombie) in &rows {
        if zombie {
            found.remove(&pid);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(script: &str) -> Launch {
        let null =
            || OwnedFd::from(std::fs::File::options().read(true).write(true).open("/dev/null").unwrap());
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        Launch {
            program: "/bin/bash".into(),
            arguments: ["-c", script].map(OsString::from).into(),
            environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
            directory: "/".into(),
            streams: [null(), null(), null()],
            resources: Vec::new(),
            mark: format!("{}-{}", std::process::id(), since.as_nanos()),
        }
    }

    #[test]
    fn the_listing_is_read_by_group_descent_and_mark() {
        let listing = "\
            1 0 1 S /sbin/init\n\
            10 1 10 S bash CMDGATE_RUN=m\n\
            11 10 11 T sleep\n\
            12 11 12 S deeper\n\
            13 1 13 S daemon A=b CMDGATE_RUN=m C=d\n\
            14 1 10 S in the group\n\
            15 10 10 Z+ <defunct>\n\
            16 1 16 S other CMDGATE_RUN=mm\n\
            17 1 17 S other XCMDGATE_RUN=m\n\
            nonsense\n";
        assert_eq!(members(listing, 10, "m"), BTreeSet::from([10, 11, 12, 13, 14]));
    }

    // contract: S28
    #[tokio::test]
    async fn nothing_is_left_of_a_tree_that_tries_to_get_away() {
        let mut tree = start(launch(
            "trap '' TERM INT HUP; (setsid sleep 3333 &); nohup sleep 3333 & \
             bash -c 'setsid bash -c \"sleep 3333; :\" & sleep 3333' & sleep 0.3; kill -STOP $$",
        ))
        .unwrap();
        tokio::time::sleep(Duration::from_millis(600)).await;
        assert!(tree.members().await.unwrap().len() >= 5);
        let ended = tokio::time::timeout(Duration::from_secs(10), tree.end()).await.unwrap();
        assert!(ended.unwrap());
        assert_eq!(tree.members().await.unwrap(), BTreeSet::new());
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&tree.wait().await.unwrap()), Some(9));
    }

    // contract: S28
    #[tokio::test]
    async fn what_outlives_the_command_is_found_by_its_mark() {
        let mut tree = start(launch("(setsid nohup sleep 3333 >/dev/null 2>&1 &) ; exit 5")).unwrap();
        assert_eq!(tree.wait().await.unwrap().code(), Some(5));
        assert!(tree.end().await.unwrap());
        assert_eq!(tree.members().await.unwrap(), BTreeSet::new());
    }

    #[tokio::test]
    async fn a_dropped_tree_is_killed() {
        let tree = start(launch("sleep 3333 & sleep 3333")).unwrap();
        let group = tree.pid;
        drop(tree);
        for _ in 0..200 {
            if rustix::process::test_kill_process_group(group).is_err() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("the group still lives");
    }

    // contract: S25
    #[tokio::test]
    async fn the_marker_arrives_and_nothing_else_is_inherited() {
        let profile = crate::sandbox::seatbelt::Confinement { tmp: "/tmp".into(), ..Default::default() }
            .profile()
            .unwrap();
        let arguments = profile.arguments(&["/bin/bash", "-c", "cat; echo /dev/fd/*"].map(OsString::from));
        let shell = arguments.iter().position(|argument| argument == "--").unwrap() + 1;
        let (mut read, write) = std::io::pipe().unwrap();
        let leaked = std::fs::File::open("/").unwrap();
        rustix::io::fcntl_setfd(&leaked, rustix::io::FdFlags::empty()).unwrap();
        let out = tempfile::NamedTempFile::new().unwrap();
        let mut launch = launch("");
        launch.program = PathBuf::from(&arguments[shell]);
        launch.arguments = arguments[shell + 1..].to_vec();
        launch.streams[0] = write.into();
        launch.streams[1] = out.reopen().unwrap().into();
        let mut tree = start(launch).unwrap();
        assert!(tree.wait().await.unwrap().success());
        let mut marker = String::new();
        std::io::Read::read_to_string(&mut read, &mut marker).unwrap();
        assert_eq!(marker, "r");
        let seen = std::fs::read_to_string(out.path()).unwrap();
        // The fourth is the listing of the directory itself.
        assert_eq!(seen.split_whitespace().count(), 4, "{seen}");
        assert!(tree.end().await.unwrap());
    }

    #[test]
    fn every_limit_is_accounted_for() {
        let asked = Limits {
            processes: Some(1),
            open_files: Some(2),
            file_size: Some(3),
            data: Some(4),
            cpu_seconds: Some(5),
            memory: Some(6),
            ..Limits::default()
        };
        let (resources, statuses) = limits(&asked, true);
        let holds = |kind| &statuses.iter().find(|status| status.kind == kind).unwrap().holds;
        for kind in [LimitKind::OpenFiles, LimitKind::FileSize, LimitKind::Data, LimitKind::CpuSeconds] {
            assert_eq!(*holds(kind), Holds::ResourceLimit);
        }
        for kind in [LimitKind::Processes, LimitKind::Memory, LimitKind::SharedMemory] {
            assert!(matches!(holds(kind), Holds::Unenforced(_)));
        }
        assert_eq!((resources.len(), statuses.len()), (5, 8));
        assert_eq!(limits(&Limits { processes: None, ..Limits::default() }, false).1.len(), 2);
    }

    #[tokio::test]
    async fn limits_are_set_on_the_command_alone() {
        let out = tempfile::NamedTempFile::new().unwrap();
        let mut launch = launch("ulimit -n; ulimit -c");
        launch.streams[1] = out.reopen().unwrap().into();
        launch.resources = vec![(Resource::Nofile, 77), (Resource::Core, 0)];
        let mut tree = start(launch).unwrap();
        assert!(tree.wait().await.unwrap().success());
        assert_eq!(std::fs::read_to_string(out.path()).unwrap(), "77\n0\n");
    }
}
