//! What ends everything that this process has started, should this process be ended by SIGKILL.
//!
//! The kernel's own means have gaps. `PR_SET_PDEATHSIG` is set by each process for itself and is not inherited:
//! bubblewrap's first process inside asks for it only after it has made the one that executes the command, and what a
//! command without a sandbox starts never does. A process that waits for its parent to set it up waits for ever once
//! that is gone. So another process stands by: it waits for this one to end, and then ends what carries this one's
//! mark. It is a shell, because this process may be large, run anybody's program, and cannot be copied cheaply.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, Once, PoisonError};

use rustix::fs::{Access, access};
use rustix::io::Errno;
use rustix::process::{Pid, WaitId, WaitIdOptions, getpid, waitid};

use super::{Launch, start};
use crate::kill::Family;

/// Reads standard input to its end, which comes when this process ends, however it does. Then it stops and kills all
/// whose limits (proc_pid_limits(5)) or environment carry the mark, until none is left or two seconds have passed: a
/// process that was killed and that nobody waits for still has limits.
///
/// Each entry of an environment ends with a zero byte, which BusyBox's grep reads past only when told (`-z`).
const SCRIPT: &str = r#"read -r _
round=0
while [ $round -lt 40 ]; do
    pids=
    for file in $(grep -ls -e "$1" /proc/[0-9]*/limits; grep -lsz -e "$2" /proc/[0-9]*/environ); do
        file=${file#/proc/}
        pids="$pids ${file%/*}"
    done
    [ -n "$pids" ] || exit 0
    kill -STOP $pids
    kill -KILL $pids
    [ $round -lt 3 ] || sleep 0.05
    round=$((round + 1))
done"#;

/// Where the shell finds the programs that the script needs.
const PATH: &str = "/usr/bin:/bin:/run/current-system/sw/bin";
/// Those programs.
const NEEDED: [&str; 2] = ["grep", "sleep"];

/// A process that stands by.
#[derive(Debug)]
struct Guard {
    /// The process that it stands by for. A copy of that process, made by fork(2), is not it.
    owner: Pid,
    pid: Pid,
    handle: OwnedFd,
    /// Closed by the kernel when this process ends, and by nothing before: no other program inherits it. (A copy of this
    /// process that executes nothing holds it as well, and the guard then waits for that too.)
    _lifeline: OwnedFd,
}

static GUARD: Mutex<Option<Guard>> = Mutex::new(None);

/// What grep(1) finds in the environment of what carries the mark.
fn entry(family: Family) -> String {
    format!("^{}", family.variable())
}

/// Why what is left would not be found, should this process be ended by SIGKILL. `None` where it would be, or where
/// another run is around this process, which ends everything in it.
pub(crate) fn shortcoming() -> Option<String> {
    if Family::own().is_some() {
        return missing_in(PATH);
    }
    let why =
        "what is left is found by a limit on resident memory (`ulimit -m`), and another one is set already";
    (!Family::is_inside_a_run()).then(|| why.to_owned())
}

fn missing_in(path: &str) -> Option<String> {
    let found = |program: &str| {
        path.split(':').any(|directory| access(Path::new(directory).join(program), Access::EXEC_OK).is_ok())
    };
    let program = NEEDED.into_iter().find(|program| !found(program))?;
    Some(format!("what is left is found with `{program}`, which is not in {path}"))
}

/// Makes sure that a guard stands by, before anything is started that it would have to end.
///
/// Nothing is done where another run is around this process, which ends everything in it.
pub(super) fn stand_by() -> io::Result<()> {
    static AT_EXIT: Once = Once::new();
    let Some(family) = Family::own() else { return Ok(()) };
    let mut guard = GUARD.lock().unwrap_or_else(PoisonError::into_inner);
    if guard.as_ref().is_some_and(Guard::stands) {
        return Ok(());
    }
    if let Some(gone) = guard.take() {
        super::forget(gone.pid.as_raw_nonzero().get().cast_unsigned());
    }
    let (reader, lifeline) = super::pipe()?;
    let nothing = || File::options().write(true).open("/dev/null").map(OwnedFd::from);
    let launch = Launch {
        program: PathBuf::from("/bin/sh"),
        arguments: ["-c", SCRIPT, "cmdgate-guard", &family.limits(), &entry(family)].map(Into::into).to_vec(),
        environment: vec![("PATH".into(), PATH.into())],
        directory: PathBuf::from("/"),
        streams: [reader, nothing()?, nothing()?],
        keep: Vec::new(),
        groups: Vec::new(),
        resources: Vec::new(),
        hold: None,
        tree: None,
        // Not among those that a signal to this process's group or terminal reaches.
        session: true,
        terminal: false,
        outlives: true,
    };
    let (pid, handle) = start::start(&launch)
        .map_err(|error| io::Error::new(error.kind(), format!("/bin/sh, which is to stand by: {error}")))?;
    super::registry().insert(pid.as_raw_nonzero().get());
    *guard = Some(Guard { owner: getpid(), pid, handle, _lifeline: lifeline });
    AT_EXIT.call_once(dismiss_at_exit);
    Ok(())
}

impl Guard {
    /// Whether it has not been ended by somebody.
    fn stands(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
        self.owner == getpid() && matches!(waitid(WaitId::PidFd(self.handle.as_fd()), options), Ok(None))
    }
}

/// Has the guard dismissed when this process ends in the ordinary way. It would go by itself, but as an orphan, which
/// many containers never take out of the process table.
#[expect(unsafe_code, reason = "std has no hook for the end of the process")]
fn dismiss_at_exit() {
    extern "C" fn dismiss() {
        let Ok(mut guard) = GUARD.try_lock() else { return };
        let Some(guard) = guard.take_if(|guard| guard.owner == getpid()) else { return };
        // Something is still being ended: then the guard is needed.
        if super::registry().iter().any(|&pid| Some(guard.pid) != Pid::from_raw(pid)) {
            return;
        }
        super::kill(&guard.handle);
        while matches!(waitid(WaitId::PidFd(guard.handle.as_fd()), WaitIdOptions::EXITED), Err(Errno::INTR)) {
        }
    }
    // SAFETY: the function has the type that is asked for, does not unwind, and is there for as long as the program.
    // Where no more can be registered, the guard goes by itself.
    unsafe { libc::atexit(dismiss) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::{ended_within, reap};
    use std::process::{Command, Stdio};
    use std::time::Duration;

    /// A process that carries this.
    fn marked(environment: &[(&str, &str)], limit: Option<u64>) -> OwnedFd {
        let file = |write: bool| {
            File::options().read(!write).write(write).open("/dev/null").map(OwnedFd::from).unwrap()
        };
        let launch = Launch {
            program: PathBuf::from("/bin/sleep"),
            arguments: vec!["300".into()],
            environment: environment.iter().map(|(name, value)| (name.into(), value.into())).collect(),
            directory: PathBuf::from("/"),
            streams: [file(false), file(true), file(true)],
            keep: Vec::new(),
            groups: Vec::new(),
            resources: limit.map(|limit| (rustix::process::Resource::Rss, limit)).into_iter().collect(),
            hold: None,
            tree: None,
            session: true,
            terminal: false,
            outlives: false,
        };
        start::start(&launch).unwrap().1
    }

    // promise: 9
    #[test]
    fn every_shell_ends_what_carries_the_mark_and_nothing_else() {
        let busybox = ["/usr/bin/busybox", "/bin/busybox"].into_iter().find(|path| Path::new(path).exists());
        let tools = tempfile::tempdir().unwrap();
        for tool in busybox.iter().flat_map(|_| NEEDED) {
            std::os::unix::fs::symlink(busybox.unwrap(), tools.path().join(tool)).unwrap();
        }
        let mut shells = vec![(vec!["/bin/sh"], PATH), (vec!["bash"], PATH)];
        shells.extend(busybox.map(|busybox| (vec![busybox, "sh"], tools.path().to_str().unwrap())));
        for (shell, path) in shells {
            // Of no process that runs commands.
            let family = Family::invented();
            let (_, limit) = family.resource();
            let variable = family.variable() + "7";
            let variable = variable.split_once('=').unwrap();
            let doomed = [
                marked(&[("A", "1"), variable, ("B", "2")], None),
                marked(&[], Some(limit)),
                marked(&[], Some(limit - 5)),
            ];
            let spared = [
                marked(&[("X", &format!("{}={}", variable.0, variable.1))], None),
                marked(&[], Some(limit + 1)),
            ];
            let mut guard = Command::new(shell[0])
                .args(&shell[1..])
                .args(["-c", SCRIPT, "cmdgate-guard", &family.limits(), &entry(family)])
                .env_clear()
                .env("PATH", path)
                .stdin(Stdio::piped())
                // Who is gone already is told there.
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            for handle in &doomed {
                assert!(!ended_within(handle, Duration::from_millis(20)), "{shell:?} did not wait");
            }
            drop(guard.stdin.take());
            for handle in &doomed {
                assert!(ended_within(handle, Duration::from_secs(20)), "{shell:?} left something");
                reap(handle);
            }
            assert!(guard.wait().unwrap().success(), "{shell:?}");
            for handle in &spared {
                assert!(!ended_within(handle, Duration::from_millis(20)), "{shell:?} ended a stranger");
                crate::process::kill(handle);
                assert!(ended_within(handle, Duration::from_secs(20)));
                reap(handle);
            }
        }
    }

    #[test]
    fn a_program_that_is_missing_is_named() {
        assert_eq!(missing_in(PATH), None);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().to_str().unwrap();
        for tool in NEEDED {
            assert!(missing_in(path).unwrap().contains(&format!("`{tool}`")));
            std::os::unix::fs::symlink("/bin/sh", directory.path().join(tool)).unwrap();
        }
        assert_eq!(missing_in(path), None);
    }
}
