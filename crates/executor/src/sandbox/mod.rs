//! What a command may touch: the settings a caller chooses, and the rungs that were really reached.
//!
//! This module holds data only. [`crate::plan`] turns it into a list of mounts, [`bwrap`] and
//! [`seatbelt`] render that plan for one kernel, [`seccomp`] makes the system call filters.

pub mod bwrap;
#[cfg(target_os = "linux")]
pub(crate) mod remedy;
pub mod seatbelt;
#[cfg(target_os = "linux")]
pub mod seccomp;

use std::path::PathBuf;

pub use crate::proxy::DomainRules;

/// How much of the file system a command may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Mode {
    /// Nothing may be written but a private `/tmp`. The default.
    #[default]
    ReadOnly,
    /// The project root and the extra writable roots may be written, save for the protected paths.
    WorkspaceWrite,
    /// No sandbox at all: an explicit opt-out. Timeouts, the tree kill and the environment rules still hold. Only with
    /// [`Network::On`] and [`Reads::Everything`], as [`Sandbox::danger_full_access`] has it: what only a sandbox could
    /// enforce is refused together with it.
    DangerFullAccess,
}

impl Mode {
    /// The name used in configuration and messages: `read_only`, `workspace_write`, `danger_full_access`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ReadOnly => "read_only",
            Self::WorkspaceWrite => "workspace_write",
            Self::DangerFullAccess => "danger_full_access",
        }
    }
}

/// Which network a command sees.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Network {
    /// An empty network namespace: only its own loopback. The default.
    #[default]
    Off,
    /// The host's network. Unix sockets are then refused altogether, because abstract sockets of the
    /// host (D-Bus, X11) cannot be told apart from the command's own.
    On,
    /// An empty network namespace with one door: a proxy that checks host names *and* resolved addresses.
    Domains(DomainRules),
}

/// Which files a command can see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Reads {
    /// Everything that the user can read, except hidden paths. The default.
    #[default]
    Everything,
    /// Only the project, the extra read and write roots, and the system directories (`/usr`, `/bin`, `/sbin`,
    /// `/lib*`, `/etc`, `/opt`, `/nix`, …). Other homes, `/srv`, `/mnt`, `/root` and any other top-level
    /// directory do not exist, so a symlink that leads out of the project leads nowhere.
    ProjectAndSystem,
}

/// What a command in [`Mode::WorkspaceWrite`] may do to the repository's own `.git`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum GitAccess {
    /// History can be written (commit, branch, stash, worktree); what git executes or is configured by
    /// (`hooks`, `config`, `config.worktree`, submodules' and worktrees' own) is read-only and pinned. The default.
    #[default]
    Guarded,
    /// All of `.git` is read-only: no commit, and nothing can be destroyed.
    ReadOnly,
    /// `.git` is an ordinary directory. Hostile configuration is still reported by the scan after the run.
    Open,
}

/// What is done with changes that no mount could have stopped .
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum AfterRun {
    /// Protected names that the command created or changed are put back or removed, and reported. The default.
    #[default]
    Revert,
    /// They are reported and left.
    Report,
}

/// Where a command's `/tmp` lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum PrivateTmp {
    /// One private directory (mode 0700) for all commands of an executor, removed with it. A script that one
    /// command writes is there for the next. The default.
    #[default]
    Session,
    /// A fresh file system in memory for every command, of at most this many bytes.
    Memory(u64),
}

/// The rungs of protection. A lower one is taken only when the caller's [`Sandbox::lowest_rung`] allows it,
/// and [`crate::Enforced`] says which one it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Rung {
    /// The command line may show the host's processes: `/proc` is the host's, bound read-only. For containers
    /// with a masked `/proc`. Never taken unless asked for by name.
    SharedProc,
    /// Without `--disable-userns` and tmpfs sizes (setuid bwrap, read-only `/proc/sys`); seccomp still refuses
    /// new namespaces. The default floor.
    #[default]
    Reduced,
    /// Everything.
    Full,
}

impl Rung {
    /// `full`, `reduced` or `shared_proc`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SharedProc => "shared_proc",
            Self::Reduced => "reduced",
            Self::Full => "full",
        }
    }
}

/// A set of paths with a built-in default that can be changed by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathList {
    pub(crate) entries: Vec<String>,
}

impl PathList {
    /// An empty list.
    pub const fn none() -> Self {
        Self { entries: Vec::new() }
    }

    /// The built-in protected names, relative to every writable root: what an editor, a shell, git or an agent
    /// would execute or be configured by. `*` at the end of a name matches the rest of it.
    pub fn default_protected() -> Self {
        Self { entries: crate::plan::PROTECTED.iter().map(|&name| name.to_owned()).collect() }
    }

    /// The built-in secrets: `~/` is the user's home, the rest are absolute paths.
    pub fn default_hidden() -> Self {
        Self { entries: crate::plan::SECRETS.iter().map(|&name| name.to_owned()).collect() }
    }

    /// Adds an entry.
    #[must_use]
    pub fn with(mut self, entry: impl Into<String>) -> Self {
        let entry = entry.into();
        if !self.entries.contains(&entry) {
            self.entries.push(entry);
        }
        self
    }

    /// Takes an entry out, by exactly the name it is listed under.
    #[must_use]
    pub fn without(mut self, entry: &str) -> Self {
        self.entries.retain(|listed| listed != entry);
        self
    }

    /// The entries.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(String::as_str)
    }
}

/// What a command may touch. [`Sandbox::default`] is read-only with the network off.
///
/// ```
/// use cmdgate_executor::{Mode, Network, Sandbox};
/// let sandbox = Sandbox { network: Network::On, ..Sandbox::workspace_write() };
/// assert_eq!(sandbox.mode, Mode::WorkspaceWrite);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sandbox {
    /// What may be written.
    pub mode: Mode,
    /// Which network is visible.
    pub network: Network,
    /// Which files are visible.
    pub reads: Reads,
    /// Directories beside the project that [`Mode::WorkspaceWrite`] may write. Absolute; must exist.
    pub writable_roots: Vec<PathBuf>,
    /// Files and directories that stay visible under [`Reads::ProjectAndSystem`]. Absolute; missing ones are ignored.
    pub read_roots: Vec<PathBuf>,
    /// Names below each writable root that stay read-only, also when they do not exist yet (then by the scan
    /// after the run). Entries are relative to the root, or absolute.
    pub protected: PathList,
    /// What may be done to `.git`.
    pub git: GitAccess,
    /// Secrets: read as empty. Entries are absolute or start with `~/`; an entry without either is relative to
    /// the project root (for `.env` files).
    pub hidden: PathList,
    /// What happens to changes that only the scan after the run can see.
    pub after_run: AfterRun,
    /// How many files the scan after a run looks at, parents first; a larger project is scanned in part, and
    /// [`crate::Finished::scan`] says so. Protected names are always looked at. Default 20,000; 0 turns the search
    /// for repositories and hard links off.
    pub scan_entries: usize,
    /// Where `/tmp` lies.
    pub tmp: PrivateTmp,
    /// The lowest rung that is accepted; below it nothing runs.
    pub lowest_rung: Rung,
}

impl Default for Sandbox {
    fn default() -> Self {
        Self {
            mode: Mode::ReadOnly,
            network: Network::Off,
            reads: Reads::Everything,
            writable_roots: Vec::new(),
            read_roots: Vec::new(),
            protected: PathList::default_protected(),
            git: GitAccess::Guarded,
            hidden: PathList::default_hidden(),
            after_run: AfterRun::Revert,
            scan_entries: 20_000,
            tmp: PrivateTmp::Session,
            lowest_rung: Rung::Reduced,
        }
    }
}

impl Sandbox {
    /// Nothing may be written, no network.
    pub fn read_only() -> Self {
        Self::default()
    }

    /// The project may be written, save for the protected paths; no network.
    pub fn workspace_write() -> Self {
        Self { mode: Mode::WorkspaceWrite, ..Self::default() }
    }

    /// No sandbox: the explicit opt-out.
    pub fn danger_full_access() -> Self {
        Self { mode: Mode::DangerFullAccess, network: Network::On, ..Self::default() }
    }
}
