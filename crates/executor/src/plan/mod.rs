//! What a sandbox must look like, worked out before anything is started.
//!
//! [`plan`] is a pure function of settings and a [`FsView`]; it makes one decision table. [`Plan::decide`]
//! reads that table, and both back ends ([`crate::sandbox::bwrap`], [`crate::sandbox::seatbelt`]) render it.

mod git;
mod tables;
#[cfg(test)]
mod tests;

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use tables::{PRIVATE, RUN_VISIBLE};
pub use tables::{PROTECTED, SECRETS, SYSTEM_DIRECTORIES};

use self::git::Git;
use crate::sandbox::{Mode, Network, PrivateTmp, Reads, Sandbox};
use crate::view::{FsView, Kind};

/// What a path is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Reading it, or learning that it is there.
    Read,
    /// Changing, making, renaming or removing it.
    Write,
}

/// What a plan says to an operation on a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Access {
    /// The sandbox lets it through; ordinary permissions still apply.
    Allow,
    /// The sandbox refuses it, or the scan after the run undoes it.
    Deny(Rule),
}

/// Why a plan refuses something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rule {
    /// [`Mode::ReadOnly`]: nothing may be written.
    ReadOnlyMode,
    /// Not below a writable root.
    OutsideWritableRoots,
    /// A protected name.
    Protected(PathBuf),
    /// A hidden path.
    Hidden(PathBuf),
    /// Not visible under [`Reads::ProjectAndSystem`].
    NotVisible,
    /// A setting of the kernel or a device.
    System,
    /// A unix socket of the host.
    HostSocket(PathBuf),
}

impl Rule {
    /// A stable, lower-case name.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::ReadOnlyMode => "read_only",
            Self::OutsideWritableRoots => "outside_writable_roots",
            Self::Protected(_) => "protected",
            Self::Hidden(_) => "hidden",
            Self::NotVisible => "not_visible",
            Self::System => "system",
            Self::HostSocket(_) => "host_socket",
        }
    }
}

/// One step of building the command's view of the file system. Later steps lie on top of earlier ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mount {
    /// A host path, read-only.
    ReadOnly(PathBuf),
    /// A host path, read-only, skipped when it is not there.
    ReadOnlyIfPresent(PathBuf),
    /// A host path that may be written.
    Writable(PathBuf),
    /// A host directory that may be written, seen at another place.
    WritableAt {
        /// Where it lies.
        source: PathBuf,
        /// Where it is seen.
        target: PathBuf,
    },
    /// A fresh `/dev` with the harmless devices.
    Devices,
    /// `/proc` of the command's own PID namespace, kernel settings read-only.
    Processes,
    /// An empty file system in memory.
    Memory {
        /// Where.
        target: PathBuf,
        /// Its permissions.
        mode: u32,
        /// Its size.
        bytes: u64,
    },
    /// Covers a file or socket with something that cannot be opened.
    Cover(PathBuf),
    /// A symbolic link in a directory that the sandbox made.
    Link {
        /// Where it points.
        target: PathBuf,
        /// Where it is.
        path: PathBuf,
    },
    /// Makes a mount that the sandbox made read-only.
    Seal(PathBuf),
}

/// One line of the decision table. The last line that covers a path decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zone {
    /// What it covers.
    pub covers: Covers,
    /// Whether it may be read.
    pub read: Result<(), Rule>,
    /// Whether it may be written.
    pub write: Result<(), Rule>,
}

/// Which paths a [`Zone`] covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Covers {
    /// A path and everything below it.
    Tree(PathBuf),
    /// The path alone, not what lies below it.
    Exactly(PathBuf),
    /// Every name in `directory` that starts with `prefix`, and everything below.
    Prefix {
        /// The directory.
        directory: PathBuf,
        /// How the name starts.
        prefix: OsString,
    },
}

impl Covers {
    /// Whether this covers a path.
    pub fn path(&self, path: &Path) -> bool {
        match self {
            Self::Tree(tree) => path.starts_with(tree),
            Self::Exactly(exact) => path == exact,
            Self::Prefix { directory, prefix } => path
                .strip_prefix(directory)
                .ok()
                .and_then(|rest| rest.components().next())
                .is_some_and(|name| name.as_os_str().as_bytes().starts_with(prefix.as_bytes())),
        }
    }
}

/// A name that stays read-only below a writable root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProtectedPath {
    /// The path.
    pub path: PathBuf,
    /// What lay there when the plan was made.
    pub kind: Kind,
}

/// Everything that a back end needs to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The mode.
    pub mode: Mode,
    /// Which network is visible.
    pub network: Network,
    /// Which files are visible.
    pub reads: Reads,
    /// The project root.
    pub root: PathBuf,
    /// Where the command starts.
    pub workdir: PathBuf,
    /// Directories that may be written, parents first. Empty in [`Mode::ReadOnly`].
    pub writable: Vec<PathBuf>,
    /// Host paths that are visible under [`Reads::ProjectAndSystem`]; empty otherwise.
    pub visible: Vec<PathBuf>,
    /// The private directory that is seen as `/tmp`; `None` when `/tmp` is in memory.
    pub session_tmp: Option<PathBuf>,
    /// Protected paths that exist: a mount keeps them.
    pub protected: Vec<ProtectedPath>,
    /// Patterns of protected names whether or not they exist: the scan after the run keeps them.
    pub guarded: Vec<Covers>,
    /// Repositories whose configuration the scan after the run looks at.
    pub git_directories: Vec<PathBuf>,
    /// Hidden paths that exist.
    pub hidden: Vec<PathBuf>,
    /// Whether unix sockets are refused altogether, and why.
    pub refuse_unix_sockets: Option<&'static str>,
    /// How the file system is put together, in order.
    pub mounts: Vec<Mount>,
    /// The decision table.
    pub zones: Vec<Zone>,
}

/// What a plan is made from.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The settings.
    pub sandbox: &'a Sandbox,
    /// The project root, symlinks resolved.
    pub root: &'a Path,
    /// The project root as the caller named it.
    pub root_as_given: &'a Path,
    /// Where the command starts, symlinks resolved.
    pub workdir: &'a Path,
    /// The user's home directories (`$HOME` and the one in the user database).
    pub homes: &'a [PathBuf],
    /// The private directory to be seen as `/tmp`, for [`PrivateTmp::Session`].
    pub session_tmp: Option<&'a Path>,
    /// The size of `/dev/shm`.
    pub shared_memory: u64,
}

impl Plan {
    /// No longer insists on protected paths that were gone when they were to be mounted. Where such a path is there
    /// after all it is kept as ever; where it is not, the scan after the run guards its name.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "only bubblewrap mounts"))]
    pub(crate) fn tolerate(&mut self, fleeting: &[PathBuf]) {
        for mount in &mut self.mounts {
            if let Mount::ReadOnly(path) = mount
                && fleeting.contains(path)
                && self.protected.iter().any(|protected| protected.path == *path)
            {
                *mount = Mount::ReadOnlyIfPresent(std::mem::take(path));
            }
        }
    }

    /// Whether a path lies where the command sees a directory of its own in place of the host's.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "only bubblewrap mounts"))]
    pub(crate) fn replaced(&self, path: &Path) -> bool {
        replaced(&self.zones, path)
    }

    /// What the sandbox says to an operation. `path` must be absolute, without `..` and with symlinks resolved.
    pub fn decide(&self, operation: Operation, path: &Path) -> Access {
        let Some(zone) = self.zones.iter().rev().find(|zone| zone.covers.path(path)) else {
            return Access::Deny(Rule::NotVisible);
        };
        let decided = match operation {
            Operation::Read => &zone.read,
            Operation::Write => &zone.write,
        };
        match decided {
            Ok(()) => Access::Allow,
            Err(rule) => Access::Deny(rule.clone()),
        }
    }
}

/// Works out what a sandbox must look like. Pure: every fact comes from the request or the view.
pub fn plan(request: &Request<'_>, view: &dyn FsView) -> Plan {
    let sandbox = request.sandbox;
    let write = sandbox.mode == Mode::WorkspaceWrite;
    let roots = roots(request, view);
    let git = Git::look(request, view, &roots);
    let writable: Vec<PathBuf> = if write {
        let mut all = roots.clone();
        all.extend(git.grants.iter().cloned());
        by_depth(all)
    } else {
        Vec::new()
    };
    let mut builder = Builder { request, view, mounts: Vec::new(), zones: Vec::new(), visible: Vec::new() };

    builder.base();
    let hidden = builder.hidden_paths(&roots);
    // A secret directory that holds the project is covered first and the project laid on top of it.
    let (around, inside): (Vec<_>, Vec<_>) =
        hidden.into_iter().partition(|hidden| roots.iter().any(|root| root.starts_with(&hidden.path)));
    for hidden in &around {
        builder.hide(hidden);
    }
    builder.roots(&roots, &writable);
    let protection = if write { builder.protect(&roots, &git) } else { Protection::default() };
    for hidden in &inside {
        builder.hide(hidden);
    }
    let refuse_unix_sockets = builder.sockets();
    builder.mounts.push(Mount::Seal(PathBuf::from("/dev")));
    if sandbox.reads == Reads::ProjectAndSystem {
        builder.mounts.push(Mount::Seal(PathBuf::from("/")));
    }

    Plan {
        mode: sandbox.mode,
        network: sandbox.network.clone(),
        reads: sandbox.reads,
        root: request.root.to_owned(),
        workdir: request.workdir.to_owned(),
        writable,
        visible: builder.visible,
        session_tmp: match sandbox.tmp {
            PrivateTmp::Session => request.session_tmp.map(Path::to_owned),
            PrivateTmp::Memory(_) => None,
        },
        protected: protection.paths,
        guarded: protection.guarded,
        git_directories: git.directories,
        hidden: around.into_iter().chain(inside).map(|hidden| hidden.path).collect(),
        refuse_unix_sockets,
        mounts: builder.mounts,
        zones: builder.zones,
    }
}

/// The project root and the extra writable roots, parents first.
fn roots(request: &Request<'_>, view: &dyn FsView) -> Vec<PathBuf> {
    let mut roots = vec![request.root.to_owned()];
    if request.sandbox.mode == Mode::WorkspaceWrite {
        roots.extend(request.sandbox.writable_roots.iter().filter_map(|root| view.real(root)));
    }
    by_depth(roots)
}

fn by_depth(mut paths: Vec<PathBuf>) -> Vec<PathBuf> {
    paths.sort_by(|left, right| {
        left.components().count().cmp(&right.components().count()).then_with(|| left.cmp(right))
    });
    paths.dedup();
    paths
}

struct HiddenPath {
    path: PathBuf,
    kind: Kind,
}

#[derive(Debug, Default)]
struct Protection {
    paths: Vec<ProtectedPath>,
    guarded: Vec<Covers>,
}

struct Builder<'a> {
    request: &'a Request<'a>,
    view: &'a dyn FsView,
    mounts: Vec<Mount>,
    zones: Vec<Zone>,
    visible: Vec<PathBuf>,
}

impl Builder<'_> {
    fn zone(&mut self, covers: Covers, read: Result<(), Rule>, write: Result<(), Rule>) {
        self.zones.push(Zone { covers, read, write });
    }

    fn outside(&self) -> Rule {
        match self.request.sandbox.mode {
            Mode::ReadOnly => Rule::ReadOnlyMode,
            Mode::WorkspaceWrite | Mode::DangerFullAccess => Rule::OutsideWritableRoots,
        }
    }

    /// Everything below the project: the system, and the private places.
    fn base(&mut self) {
        let root = PathBuf::from("/");
        match self.request.sandbox.reads {
            Reads::Everything => {
                self.mounts.push(Mount::ReadOnly(root.clone()));
                self.zone(Covers::Tree(root), Ok(()), Err(self.outside()));
            }
            Reads::ProjectAndSystem => {
                self.zone(Covers::Tree(root), Err(Rule::NotVisible), Err(Rule::NotVisible));
                self.system_directories();
            }
        }
        self.devices_and_processes();
        self.private_places();
        if self.request.sandbox.reads == Reads::ProjectAndSystem {
            self.link_to_root();
        }
    }

    fn system_directories(&mut self) {
        for directory in SYSTEM_DIRECTORIES.iter().map(Path::new) {
            let Some(real) = self.view.real(directory) else { continue };
            // On a merged /usr, /bin is a symlink to usr/bin and is made as one.
            let merged = self.view.kind(directory) == Kind::Symlink
                && SYSTEM_DIRECTORIES.iter().any(|&system| real.starts_with(system) && real != directory);
            if merged {
                self.mounts.push(Mount::Link { target: real, path: directory.to_owned() });
            } else if self.view.kind(&real) == Kind::Directory {
                self.show(directory);
            }
        }
    }

    fn show(&mut self, path: &Path) {
        self.mounts.push(Mount::ReadOnly(path.to_owned()));
        self.visible.push(path.to_owned());
        self.zone(Covers::Tree(path.to_owned()), Ok(()), Err(self.outside()));
    }

    fn devices_and_processes(&mut self) {
        self.mounts.push(Mount::Devices);
        self.zone(Covers::Tree("/dev".into()), Ok(()), Err(Rule::System));
        for device in [
            "null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts", "fd", "stdin", "stdout",
            "stderr",
        ] {
            self.zone(Covers::Tree(Path::new("/dev").join(device)), Ok(()), Ok(()));
        }
        self.mounts.push(Mount::Memory {
            target: "/dev/shm".into(),
            mode: 0o1777,
            bytes: self.request.shared_memory,
        });
        self.mounts.push(Mount::Processes);
        self.zone(Covers::Tree("/proc".into()), Ok(()), Ok(()));
        for settings in ["/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus"] {
            self.zone(Covers::Tree(settings.into()), Ok(()), Err(Rule::System));
        }
    }

    fn private_places(&mut self) {
        let view = self.view;
        let confined = self.request.sandbox.reads == Reads::ProjectAndSystem;
        for place in PRIVATE.iter().map(Path::new) {
            // In an empty root every private place is made; else only where the host has a real directory,
            // because there is nowhere to mount on otherwise.
            if !confined && view.kind(place) != Kind::Directory {
                continue;
            }
            self.zone(Covers::Tree(place.to_owned()), Ok(()), Ok(()));
            if place == Path::new("/run") {
                self.mounts.push(Mount::Memory { target: place.to_owned(), mode: 0o755, bytes: 64 << 20 });
                let mut shown: Vec<PathBuf> = RUN_VISIBLE.iter().map(PathBuf::from).collect();
                let resolver = view.real(Path::new("/etc/resolv.conf"));
                if let Some(real) = resolver.filter(|real| real.starts_with("/run"))
                    && !shown.iter().any(|path| real.starts_with(path))
                {
                    shown.push(real);
                }
                for path in shown {
                    if view.real(&path).is_some() {
                        self.zone(Covers::Tree(path.clone()), Ok(()), Err(self.outside()));
                        self.mounts.push(Mount::ReadOnlyIfPresent(path));
                    }
                }
            } else if place == Path::new("/tmp") {
                self.mounts.push(match (self.request.sandbox.tmp, self.request.session_tmp) {
                    (PrivateTmp::Session, Some(source)) => {
                        Mount::WritableAt { source: source.to_owned(), target: place.to_owned() }
                    }
                    (PrivateTmp::Session, None) => {
                        Mount::Memory { target: place.to_owned(), mode: 0o1777, bytes: 1 << 30 }
                    }
                    (PrivateTmp::Memory(bytes), _) => {
                        Mount::Memory { target: place.to_owned(), mode: 0o1777, bytes }
                    }
                });
            } else if place != Path::new("/dev/shm") {
                self.mounts.push(Mount::Memory { target: place.to_owned(), mode: 0o1777, bytes: 1 << 30 });
            }
        }
        // Where /var/run is a directory of its own, it holds the same sockets as /run.
        if !confined && view.kind(Path::new("/var/run")) == Kind::Directory {
            self.zone(Covers::Tree("/var/run".into()), Ok(()), Ok(()));
            self.mounts.push(Mount::Memory { target: "/var/run".into(), mode: 0o755, bytes: 1 << 20 });
        }
        if confined && view.kind(Path::new("/var/run")) == Kind::Symlink {
            self.mounts.push(Mount::Link { target: "/run".into(), path: "/var/run".into() });
        }
    }

    /// A command may name the project by the path its user knows, which leads through a symlink.
    fn link_to_root(&mut self) {
        let given = self.request.root_as_given;
        let known = [SYSTEM_DIRECTORIES, PRIVATE, &["/dev", "/proc"]].concat();
        if given.is_absolute()
            && given != self.request.root
            && !given.components().any(|part| matches!(part, Component::ParentDir | Component::CurDir))
            && !known.iter().any(|&place| given.starts_with(place))
            && !given.starts_with(self.request.root)
            && !self.request.root.starts_with(given)
        {
            self.mounts.push(Mount::Link { target: self.request.root.to_owned(), path: given.to_owned() });
        }
    }

    fn roots(&mut self, roots: &[PathBuf], writable: &[PathBuf]) {
        let mut all: Vec<(PathBuf, bool)> =
            roots.iter().map(|root| (root.clone(), writable.contains(root))).collect();
        all.extend(writable.iter().filter(|root| !roots.contains(root)).map(|root| (root.clone(), true)));
        // Read roots are mounted anew: they may lie below a private place.
        for root in &self.request.sandbox.read_roots {
            if let Some(real) =
                self.view.real(root).filter(|real| !all.iter().any(|(known, _)| known == real))
            {
                all.push((real, false));
            }
        }
        all.sort_by(|left, right| {
            left.0.components().count().cmp(&right.0.components().count()).then_with(|| left.0.cmp(&right.0))
        });
        for (root, write) in all {
            self.mounts.push(if write {
                Mount::Writable(root.clone())
            } else {
                Mount::ReadOnly(root.clone())
            });
            let denied = self.outside();
            self.zone(Covers::Tree(root.clone()), Ok(()), if write { Ok(()) } else { Err(denied) });
            if self.request.sandbox.reads == Reads::ProjectAndSystem {
                self.visible.push(root);
            }
        }
    }

    /// Keeps protected names from being changed, and their parents from being moved away from over them.
    fn protect(&mut self, roots: &[PathBuf], git: &Git) -> Protection {
        let mut protection = Protection::default();
        let mut wanted: Vec<PathBuf> = Vec::new();
        for root in roots {
            for entry in self.request.sandbox.protected.iter() {
                let covers = pattern(root, entry);
                if let Covers::Prefix { directory, prefix } = &covers {
                    wanted.extend(
                        self.view
                            .entries(directory)
                            .into_iter()
                            .filter(|(name, _)| name.as_bytes().starts_with(prefix.as_bytes()))
                            .map(|(name, _)| directory.join(name)),
                    );
                } else if let Covers::Tree(path) = &covers {
                    wanted.push(path.clone());
                }
                if !protection.guarded.contains(&covers) {
                    protection.guarded.push(covers);
                }
            }
        }
        for path in &git.guarded {
            wanted.push(path.clone());
            protection.guarded.push(Covers::Tree(path.clone()));
        }
        for covers in &protection.guarded {
            let rule = match covers {
                Covers::Tree(path) | Covers::Exactly(path) => Rule::Protected(path.clone()),
                Covers::Prefix { directory, prefix } => Rule::Protected(directory.join(prefix)),
            };
            self.zone(covers.clone(), Ok(()), Err(rule));
        }
        let wanted = by_depth(wanted);
        let mut pinned: Vec<PathBuf> = Vec::new();
        let mut kept: Vec<PathBuf> = Vec::new();
        for path in wanted {
            let kind = self.view.kind(&path);
            protection.paths.push(ProtectedPath { path: path.clone(), kind });
            // A symlink cannot be mounted on: what it leads to is, and the scan after the run watches the link.
            let Some(real) = self.view.real(&path) else { continue };
            let Some(root) = roots.iter().chain(&git.grants).rev().find(|root| real.starts_with(root)) else {
                continue;
            };
            if real == *root {
                continue;
            }
            if real != path {
                self.zone(Covers::Tree(real.clone()), Ok(()), Err(Rule::Protected(real.clone())));
            }
            pinned.extend(
                real.ancestors()
                    .skip(1)
                    .take_while(|ancestor| *ancestor != root.as_path())
                    .map(Path::to_owned),
            );
            kept.push(real);
        }
        let kept = by_depth(kept);
        // A directory is pinned by mounting it onto itself: renaming a mount point fails (EBUSY).
        for pin in by_depth(pinned) {
            if !kept.iter().any(|kept| pin.starts_with(kept)) {
                self.mounts.push(Mount::Writable(pin));
            }
        }
        let mut done: Vec<PathBuf> = Vec::new();
        for path in kept {
            if !done.iter().any(|above| path.starts_with(above)) {
                self.mounts.push(Mount::ReadOnly(path.clone()));
                done.push(path);
            }
        }
        protection
    }

    fn hidden_paths(&self, roots: &[PathBuf]) -> Vec<HiddenPath> {
        let mut found: Vec<PathBuf> = Vec::new();
        for entry in self.request.sandbox.hidden.iter() {
            if let Some(rest) = entry.strip_prefix("~/") {
                found.extend(self.request.homes.iter().map(|home| home.join(rest)));
            } else {
                match pattern(self.request.root, entry) {
                    Covers::Tree(path) | Covers::Exactly(path) => found.push(path),
                    Covers::Prefix { directory, prefix } => found.extend(
                        self.view
                            .entries(&directory)
                            .into_iter()
                            .filter(|(name, _)| name.as_bytes().starts_with(prefix.as_bytes()))
                            .map(|(name, _)| directory.join(name)),
                    ),
                }
            }
        }
        let real = found.iter().filter_map(|path| self.view.real(path)).collect();
        by_depth(real)
            .into_iter()
            .filter(|path| !roots.contains(path))
            .map(|path| HiddenPath { kind: self.view.kind(&path), path })
            .collect()
    }

    fn hide(&mut self, hidden: &HiddenPath) {
        if self.request.sandbox.reads == Reads::ProjectAndSystem
            && !self.visible.iter().any(|visible| hidden.path.starts_with(visible))
        {
            return;
        }
        // What lies below something hidden is gone already and cannot be mounted on.
        if matches!(self.access(&hidden.path), Err(Rule::Hidden(_))) {
            return;
        }
        // What a private place lies over is gone already too, and covering it would make the directories around it there.
        let gone = replaced(&self.zones, &hidden.path);
        match hidden.kind {
            Kind::Directory | Kind::File | Kind::Socket | Kind::Other if gone => {}
            Kind::Directory => {
                self.mounts.push(Mount::Memory { target: hidden.path.clone(), mode: 0o700, bytes: 4096 });
            }
            Kind::File | Kind::Socket | Kind::Other => self.mounts.push(Mount::Cover(hidden.path.clone())),
            Kind::Symlink | Kind::Missing => return,
        }
        let rule = Rule::Hidden(hidden.path.clone());
        self.zone(Covers::Tree(hidden.path.clone()), Err(rule.clone()), Err(rule));
    }

    fn access(&self, path: &Path) -> Result<(), Rule> {
        self.zones
            .iter()
            .rev()
            .find(|zone| zone.covers.path(path))
            .map_or(Err(Rule::NotVisible), |zone| zone.read.clone())
    }

    /// Covers the host's sockets that would still be seen: a read-only mount does not stop `connect`.
    fn sockets(&mut self) -> Option<&'static str> {
        if self.request.sandbox.network == Network::On {
            return Some("the host's network is shared, and with it the host's abstract sockets");
        }
        let sockets = self.view.sockets();
        if sockets.unresolved > 0 {
            return Some(
                "a socket of the host is bound by a relative name and cannot be found to be covered",
            );
        }
        for path in sockets.paths {
            let Some(real) = self.view.real(&path) else { continue };
            if self.view.kind(&real) != Kind::Socket || self.access(&real).is_err() || self.private(&real) {
                continue;
            }
            let rule = Rule::HostSocket(real.clone());
            self.zone(Covers::Tree(real.clone()), Err(rule.clone()), Err(rule));
            self.mounts.push(Mount::Cover(real));
        }
        None
    }

    /// Whether a host path is out of sight because something private lies over it.
    fn private(&self, path: &Path) -> bool {
        let last = self.zones.iter().rev().find(|zone| zone.covers.path(path));
        let places = ["/tmp", "/var/tmp", "/dev", "/proc", "/run", "/var/run"];
        last.is_some_and(|zone| match &zone.covers {
            Covers::Tree(tree) => {
                places.iter().any(|&place| tree == Path::new(place)) || tree == Path::new("/dev/shm")
            }
            Covers::Exactly(_) | Covers::Prefix { .. } => false,
        })
    }
}

/// Whether what decides about a path is that a private place lies over the host's: nothing of the host was laid on top.
fn replaced(zones: &[Zone], path: &Path) -> bool {
    let last = zones.iter().rev().find(|zone| zone.covers.path(path));
    last.is_some_and(|zone| match &zone.covers {
        Covers::Tree(tree) => PRIVATE.iter().chain(&["/var/run"]).any(|&place| tree == Path::new(place)),
        Covers::Exactly(_) | Covers::Prefix { .. } => false,
    })
}

/// An entry of a [`crate::PathList`]: absolute or below `root`, a final `*` standing for the rest of the name.
fn pattern(root: &Path, entry: &str) -> Covers {
    let path = root.join(entry);
    match (entry.strip_suffix('*'), path.parent(), path.file_name()) {
        (Some(_), Some(directory), Some(name)) => {
            let name = name.as_bytes();
            Covers::Prefix {
                directory: directory.to_owned(),
                prefix: OsStr::from_bytes(name.strip_suffix(b"*").unwrap_or(name)).to_owned(),
            }
        }
        _ => Covers::Tree(path),
    }
}
