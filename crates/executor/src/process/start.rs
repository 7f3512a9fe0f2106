//! Executing a program in a new process, without copying this one.
//!
//! fork(2) copies the page tables of the calling process: 0.2 ms for an empty one, 6 to 12 ms at 100 MiB (measured), for a
//! copy that is thrown away at once. posix_spawn(3) copies nothing, but knows neither resource limits nor
//! `PR_SET_PDEATHSIG` nor close_range(2), and std takes fork as soon as anything of that kind is asked for. So this does
//! what posix_spawn does inside: clone(2) with `CLONE_VM | CLONE_VFORK`. The new process borrows this one's memory, on a
//! stack of its own, and the calling thread stands still until it has executed the program or ended.

use std::ffi::{CString, OsStr, c_char, c_int, c_void};
use std::io;
use std::os::fd::{FromRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::ptr;

use rustix::io::Errno;
use rustix::process::{Pid, Resource, Rlimit, Signal};

use super::Launch;
use crate::bounds::lowered;

/// What the steps below and execve(2) need at the most; they keep nothing on the stack.
const STACK: usize = 64 * 1024;

/// Where the first three descriptors end, which the program's own standard streams take.
const STANDARD: c_int = 3;

/// Executes a program and gives its number and a descriptor for it.
pub(super) fn start(launch: &Launch) -> io::Result<(Pid, OwnedFd)> {
    let mut child = Child::prepare(launch)?;
    let mut stack = vec![0_u8; STACK];
    let mut handle: c_int = -1;
    let signals = Signals::block()?;
    let pid = clone(&mut child, &mut stack, &mut handle);
    drop(signals);
    let pid = pid?;
    // SAFETY: `CLONE_PIDFD` has put a new descriptor here, which nobody else knows.
    #[expect(unsafe_code, reason = "the descriptor comes from clone(2) as a number")]
    let handle = unsafe { OwnedFd::from_raw_fd(handle) };
    if let Some(failed) = child.failed {
        // It has ended without executing anything.
        super::reap(&handle);
        return Err(failed.into());
    }
    Ok((pid, handle))
}

/// Everything that the new process does, allocated before it is made.
struct Child<'a> {
    launch: &'a Launch,
    streams: [OwnedFd; 3],
    limits: Vec<(Resource, Rlimit)>,
    parent: Pid,
    directory: CString,
    program: CString,
    arguments: Pointers,
    /// For a script that does not name its interpreter, as execvp(3) has it.
    shell: CString,
    shell_arguments: Pointers,
    environment: Pointers,
    /// Why the program could not be executed. Written by the new process, in this one's memory.
    failed: Option<Errno>,
}

/// Strings for execve(2): the pointers, a null one at the end, and what they point to.
struct Pointers {
    pointers: Vec<*const c_char>,
    _strings: Vec<CString>,
}

impl Pointers {
    fn new(strings: Vec<CString>) -> Self {
        let pointers = strings.iter().map(|string| string.as_ptr()).chain([ptr::null()]).collect();
        Self { pointers, _strings: strings }
    }
}

fn text(parts: &[&OsStr]) -> io::Result<CString> {
    let bytes: Vec<u8> = parts.iter().flat_map(|part| part.as_bytes()).copied().collect();
    Ok(CString::new(bytes)?)
}

impl<'a> Child<'a> {
    fn prepare(launch: &'a Launch) -> io::Result<Self> {
        let program = text(&[launch.program.as_os_str()])?;
        let rest: Vec<CString> =
            launch.arguments.iter().map(|word| text(&[word.as_os_str()])).collect::<io::Result<_>>()?;
        let words = |first: &[&CString]| {
            Pointers::new(first.iter().copied().chain(&rest).cloned().collect::<Vec<CString>>())
        };
        let shell = CString::from(c"/bin/sh");
        let environment = launch
            .environment
            .iter()
            .map(|(name, value)| text(&[name.as_os_str(), OsStr::new("="), value.as_os_str()]))
            .collect::<io::Result<_>>()?;
        let apart = |stream: &OwnedFd| rustix::io::fcntl_dupfd_cloexec(stream, STANDARD);
        let [input, output, error] = &launch.streams;
        Ok(Self {
            launch,
            // A stream that has one of the first three numbers would be overwritten by another.
            streams: [apart(input)?, apart(output)?, apart(error)?],
            limits: launch
                .resources
                .iter()
                .map(|&(resource, limit)| (resource, lowered(resource, limit)))
                .collect(),
            parent: rustix::process::getpid(),
            directory: text(&[launch.directory.as_os_str()])?,
            arguments: words(&[&program]),
            shell_arguments: words(&[&shell, &program]),
            shell,
            program,
            environment: Pointers::new(environment),
            failed: None,
        })
    }

    /// Executes the program; comes back only with what went wrong.
    fn execute(&self) -> Errno {
        if let Err(error) = self.arrange() {
            return error;
        }
        let error = execve(&self.program, &self.arguments, &self.environment);
        if error == Errno::NOEXEC {
            return execve(&self.shell, &self.shell_arguments, &self.environment);
        }
        error
    }

    /// What the new process changes about itself. System calls only: no allocation and no lock, because other threads
    /// go on meanwhile and may hold them.
    fn arrange(&self) -> Result<(), Errno> {
        let [input, output, error] = &self.streams;
        rustix::stdio::dup2_stdin(input)?;
        rustix::stdio::dup2_stdout(output)?;
        rustix::stdio::dup2_stderr(error)?;
        rustix::process::chdir(&self.directory)?;
        for group in &self.launch.groups {
            rustix::io::write(group, b"0")?;
        }
        for (resource, limit) in &self.limits {
            rustix::process::setrlimit(*resource, *limit)?;
        }
        if self.launch.terminal {
            crate::pty::take_control().map_err(|error| errno(&error))?;
        } else if self.launch.session {
            rustix::process::setsid()?;
        }
        if !self.launch.outlives {
            // bubblewrap sets this itself, a little later.
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
            if rustix::process::getppid() != Some(self.parent) {
                // The parent died before it could be said what is to happen then.
                return Err(Errno::SRCH);
            }
        }
        // bubblewrap hands on whatever it inherits, and so does bash: close all but what is meant.
        close_others()?;
        for kept in &self.launch.keep {
            rustix::io::fcntl_setfd(kept, rustix::io::FdFlags::empty())?;
        }
        reset_signals()
    }
}

/// Makes the new process, and waits until it has executed the program or ended.
#[expect(
    unsafe_code,
    reason = "no safe binding makes a process that borrows memory; what std does instead copies this process"
)]
fn clone(child: &mut Child<'_>, stack: &mut [u8], handle: &mut c_int) -> io::Result<Pid> {
    /// Runs in the new process, on `stack`.
    extern "C" fn run(child: *mut c_void) -> c_int {
        // SAFETY: this is the `Child` below. The thread that owns it stands still as long as this runs.
        let child = unsafe { &mut *child.cast::<Child<'_>>() };
        child.failed = Some(child.execute());
        127
    }

    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PIDFD | libc::SIGCHLD;
    // Stacks grow downwards on all that Rust runs on with Linux, and must be aligned to sixteen bytes.
    let spare = (stack.as_ptr().addr() + stack.len()) % 16;
    let top = stack.as_mut_ptr().wrapping_add(stack.len() - spare);
    // SAFETY: the stack, `child` and `handle` outlive the call, which returns only when the new process has let go of
    // this memory (`CLONE_VFORK`). It takes no lock and does not unwind: `execute` calls the system and nothing else. No
    // signal handler can run in it, because signals are blocked until the handlers are gone.
    let pid =
        unsafe { libc::clone(run, top.cast(), flags, ptr::from_mut(child).cast(), ptr::from_mut(handle)) };
    Pid::from_raw(pid).filter(|_| pid > 0).ok_or_else(io::Error::last_os_error)
}

#[expect(unsafe_code, reason = "executing a program has no safe binding that allocates nothing")]
fn execve(program: &CString, arguments: &Pointers, environment: &Pointers) -> Errno {
    // SAFETY: both lists end with a null pointer, and the strings that they point to are alive.
    unsafe { libc::execve(program.as_ptr(), arguments.pointers.as_ptr(), environment.pointers.as_ptr()) };
    last_error()
}

/// Marks every descriptor but the standard streams to be closed when the program is executed.
#[expect(unsafe_code, reason = "close_range has no safe binding in rustix or std")]
fn close_others() -> Result<(), Errno> {
    // SAFETY: close_range(2) with CLOSE_RANGE_CLOEXEC only sets a flag on descriptors of this process.
    let done = unsafe {
        libc::syscall(libc::SYS_close_range, STANDARD, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC)
    };
    if done == 0 { Ok(()) } else { Err(last_error()) }
}

fn last_error() -> Errno {
    errno(&io::Error::last_os_error())
}

fn errno(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

/// Keeps signals from the calling thread, and so from the new process, until dropped.
struct Signals(libc::sigset_t);

impl Signals {
    #[expect(unsafe_code, reason = "the signal mask has no safe binding in rustix or std")]
    fn block() -> io::Result<Self> {
        // SAFETY: a signal set is plain memory, and both are filled in before they are read.
        unsafe {
            let mut all: libc::sigset_t = std::mem::zeroed();
            let mut before: libc::sigset_t = std::mem::zeroed();
            libc::sigfillset(&raw mut all);
            match libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before) {
                0 => Ok(Self(before)),
                error => Err(io::Error::from_raw_os_error(error)),
            }
        }
    }
}

impl Drop for Signals {
    #[expect(unsafe_code, reason = "the signal mask has no safe binding in rustix or std")]
    fn drop(&mut self) {
        // SAFETY: this is the mask that was in force before.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, ptr::null_mut()) };
    }
}

/// Takes this process's handlers away, which would run on borrowed memory, and lets signals through. As std does, what
/// is ignored stays ignored but for `SIGPIPE`, which Rust programs ignore and others do not expect to be.
#[expect(unsafe_code, reason = "signal handlers have no safe binding in rustix or std")]
fn reset_signals() -> Result<(), Errno> {
    // SAFETY: the table of handlers belongs to the new process alone (no `CLONE_SIGHAND`), and setting the default
    // installs no code.
    unsafe {
        for signal in 1..=libc::SIGRTMAX() {
            let mut action: libc::sigaction = std::mem::zeroed();
            // The few that are refused here (SIGKILL, and those that the C library keeps to itself) have no handler of
            // a program.
            if libc::sigaction(signal, ptr::null(), &raw mut action) != 0 {
                continue;
            }
            let ignored = action.sa_sigaction == libc::SIG_IGN && signal != libc::SIGPIPE;
            if !ignored && action.sa_sigaction != libc::SIG_DFL {
                let default: libc::sigaction = std::mem::zeroed();
                libc::sigaction(signal, &raw const default, ptr::null_mut());
            }
        }
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        match libc::pthread_sigmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut()) {
            0 => Ok(()),
            _ => Err(last_error()),
        }
    }
}
