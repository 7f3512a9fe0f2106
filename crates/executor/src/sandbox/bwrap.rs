//! Renders a plan as a bubblewrap command line. Pure: nothing here touches the system.
//!
//! The order of the arguments is the order of the mounts, and a later mount lies on top of an earlier one.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use crate::plan::{Mount, Plan};
use crate::sandbox::{Mode, Network, Rung};

/// What the bubblewrap at hand can do, and who starts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Features {
    /// How much is asked of it.
    pub rung: Rung,
    /// Whether it knows `--size` (0.7 and later, not when it is set-user-id).
    pub size: bool,
    /// Whether the caller is root: then even the mount of `/proc` is made read-only.
    pub root: bool,
}

/// The descriptors that bubblewrap inherits, by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Descriptors {
    /// The two system call filters.
    pub seccomp: [i32; 2],
    /// Where it reports its child's process number and exit code.
    pub status: i32,
    /// What its child waits for before it executes the command.
    pub block: i32,
    /// Whether its standard streams are a terminal made for this command, in a session that controls nothing else.
    /// Then it stays in that session; otherwise it makes one that has no terminal.
    pub terminal: bool,
}

/// The arguments of bubblewrap, without its own name.
pub fn arguments(
    plan: &Plan,
    features: Features,
    descriptors: Descriptors,
    command: &[OsString],
) -> Vec<OsString> {
    let mut line = options(plan, features, descriptors.terminal);
    for filter in descriptors.seccomp {
        line.number("--add-seccomp-fd", filter);
    }
    line.number("--json-status-fd", descriptors.status);
    line.number("--block-fd", descriptors.block);
    line.word("--");
    line.words.extend(command.iter().cloned());
    line.words
}

/// Everything that does not depend on one run.
fn options(plan: &Plan, features: Features, terminal: bool) -> Line {
    let mut line = Line { words: Vec::with_capacity(160), features };
    // bubblewrap leaves the user namespace out for root unless told, and root would keep every capability.
    line.word("--unshare-user");
    if features.rung == Rung::Full {
        line.word("--disable-userns");
    }
    for word in ["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"] {
        line.word(word);
    }
    match plan.network {
        Network::Off | Network::Domains(_) => line.word("--unshare-net"),
        Network::On => {}
    }
    for word in ["--cap-drop", "ALL", "--die-with-parent"] {
        line.word(word);
    }
    if !terminal {
        // In this process's session a command could type into the terminal that this process was started from.
        line.word("--new-session");
    }
    for mount in &plan.mounts {
        line.mount(mount);
    }
    line.path("--chdir", &plan.workdir);
    line
}

/// The shell command that is executed: no profile, no rc file, exactly these bytes, also when they begin with `-` or `+`
/// as options of bash do.
pub fn shell_words(bash: &Path, command: &OsStr) -> Vec<OsString> {
    let options = ["--noprofile", "--norc", "-c", "--"].map(OsStr::new);
    [&[bash.as_os_str()], options.as_slice(), &[command]].concat().into_iter().map(OsStr::to_owned).collect()
}

/// Whether a plan asks for a sandbox at all.
pub const fn confines(mode: Mode) -> bool {
    match mode {
        Mode::ReadOnly | Mode::WorkspaceWrite => true,
        Mode::DangerFullAccess => false,
    }
}

struct Line {
    words: Vec<OsString>,
    features: Features,
}

impl Line {
    fn word(&mut self, word: &str) {
        self.words.push(word.into());
    }

    fn number(&mut self, option: &str, number: i32) {
        self.word(option);
        self.words.push(number.to_string().into());
    }

    fn path(&mut self, option: &str, path: &Path) {
        self.word(option);
        self.words.push(path.into());
    }

    fn onto(&mut self, option: &str, source: &Path, target: &Path) {
        self.path(option, source);
        self.words.push(target.into());
    }

    fn mount(&mut self, mount: &Mount) {
        match mount {
            Mount::ReadOnly(path) => self.onto("--ro-bind", path, path),
            Mount::ReadOnlyIfPresent(path) => self.onto("--ro-bind-try", path, path),
            Mount::Writable(path) => self.onto("--bind", path, path),
            Mount::WritableAt { source, target } => self.onto("--bind", source, target),
            Mount::Devices => self.path("--dev", Path::new("/dev")),
            Mount::Processes => self.processes(),
            Mount::Memory { target, mode, bytes } => {
                self.word("--perms");
                self.words.push(format!("{mode:04o}").into());
                if self.features.size {
                    self.word("--size");
                    self.words.push(bytes.to_string().into());
                }
                self.path("--tmpfs", target);
            }
            Mount::Cover(path) => self.onto("--ro-bind", Path::new("/dev/null"), path),
            Mount::Link { target, path } => self.onto("--symlink", target, path),
            Mount::Seal(path) => self.path("--remount-ro", path),
        }
    }

    fn processes(&mut self) {
        let proc = Path::new("/proc");
        let settings = Path::new("/proc/sys");
        match self.features.rung {
            Rung::Full | Rung::Reduced => {
                self.path("--proc", proc);
                // bubblewrap covers /proc/sys only where access(2) says it can be written, which nobody may;
                // root could all the same, whatever its capabilities.
                self.onto("--ro-bind", settings, settings);
                if self.features.root {
                    self.path("--remount-ro", proc);
                }
            }
            Rung::SharedProc => self.onto("--ro-bind", proc, proc),
        }
    }
}
