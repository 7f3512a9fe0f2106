//! What no mount can stop, found after the run and put right while nothing of the command is alive any more.
//!
//! A mount can only keep what exists: making a protected name that was not there yet is undone afterwards. A
//! placeholder in its stead was left lying about by every system that tried (and broke `git add .`), so there is
//! none. The same holds for repositories that the command made or filled with configuration that would make the
//! *user's* next git run a program, and for files that have a second name outside the project.

pub(crate) mod config;

use std::collections::{BTreeMap, VecDeque};
use std::ffi::{OsStr, OsString};
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::outcome::{Certainty, Denial, DeniedOperation, Scanned};
use crate::plan::{Covers, Plan};
use crate::sandbox::{AfterRun, GitAccess};

/// Timestamps of files come from a clock that ticks as rarely as a hundred times a second.
const CLOCK_SLACK: Duration = Duration::from_millis(25);

/// What is looked at after a run, and how things stood before it.
#[derive(Debug)]
pub(crate) struct Scan {
    roots: Vec<PathBuf>,
    guarded: Vec<Covers>,
    git_directories: Vec<PathBuf>,
    git: GitAccess,
    after_run: AfterRun,
    entries: usize,
    quarantine: PathBuf,
    before: BTreeMap<PathBuf, Standing>,
    since: i128,
}

/// What stood under a protected name.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Standing {
    directory: bool,
    link: Option<PathBuf>,
}

impl Standing {
    fn at(path: &Path) -> Option<Self> {
        let metadata = fs::symlink_metadata(path).ok()?;
        Some(Self { directory: metadata.is_dir(), link: fs::read_link(path).ok() })
    }
}

impl Scan {
    /// Notes how things stand before a run.
    pub(crate) fn before(
        plan: &Plan,
        git: GitAccess,
        after_run: AfterRun,
        entries: usize,
        quarantine: PathBuf,
    ) -> Self {
        let mut scan = Self {
            roots: plan.writable.clone(),
            guarded: plan.guarded.clone(),
            git_directories: plan.git_directories.clone(),
            git,
            after_run,
            entries,
            quarantine,
            before: BTreeMap::new(),
            since: nanoseconds(SystemTime::now().checked_sub(CLOCK_SLACK).unwrap_or(UNIX_EPOCH)),
        };
        scan.before = scan.standing();
        scan
    }

    /// Every protected name that exists.
    fn standing(&self) -> BTreeMap<PathBuf, Standing> {
        let mut found = BTreeMap::new();
        let mut note = |path: PathBuf| {
            if let Some(standing) = Standing::at(&path) {
                found.insert(path, standing);
            }
        };
        for covers in &self.guarded {
            match covers {
                Covers::Tree(path) | Covers::Exactly(path) => note(path.clone()),
                Covers::Prefix { directory, prefix } => names(directory)
                    .filter(|name| name.as_bytes().starts_with(prefix.as_bytes()))
                    .for_each(|name| note(directory.join(name))),
            }
        }
        found
    }

    /// Finds what was done, and puts it right if that was asked for.
    pub(crate) fn after(&self) -> (Vec<Denial>, Scanned) {
        let mut denials = Vec::new();
        self.protected_names(&mut denials);
        if self.git != GitAccess::Open {
            for directory in &self.git_directories {
                self.worktrees(directory, &mut denials);
            }
        }
        let scanned = self.walk(&mut denials);
        (denials, scanned)
    }

    const fn reverts(&self) -> bool {
        matches!(self.after_run, AfterRun::Revert)
    }

    fn protected_names(&self, denials: &mut Vec<Denial>) {
        for (path, now) in self.standing() {
            let then = self.before.get(&path);
            if then == Some(&now) {
                continue;
            }
            let evidence = match then {
                None => "it was created; a protected name may not be",
                Some(_) => "it was replaced; a protected name may not be",
            };
            let mut kept = None;
            let mut reverted = false;
            if self.reverts() {
                kept = self.put_away(&path);
                reverted = kept.is_some();
                if let Some(Standing { link: Some(target), .. }) = then {
                    reverted = reverted && std::os::unix::fs::symlink(target, &path).is_ok();
                }
            }
            denials.push(written(path, "protected", evidence.to_owned(), reverted, kept.as_deref()));
        }
        // A symlink under a protected name could be removed, since nothing can be mounted on it.
        for (path, then) in &self.before {
            if let (Some(target), None) = (&then.link, Standing::at(path)) {
                let reverted = self.reverts() && std::os::unix::fs::symlink(target, path).is_ok();
                denials.push(written(path.clone(), "protected", "it was removed".to_owned(), reverted, None));
            }
        }
    }

    /// A linked worktree names the directory it shares; pointing it elsewhere gives git another configuration.
    fn worktrees(&self, git_directory: &Path, denials: &mut Vec<Denial>) {
        let worktrees = git_directory.join("worktrees");
        for name in names(&worktrees) {
            let directory = worktrees.join(name);
            let file = directory.join("commondir");
            let Ok(text) = fs::read(&file) else { continue };
            let target = directory.join(OsStr::from_bytes(text.trim_ascii_end()));
            let same = |path: &Path| fs::canonicalize(path).ok();
            if same(&target).is_some() && same(&target) == same(git_directory) {
                continue;
            }
            let kept = if self.reverts() { self.put_away(&file) } else { None };
            let reverted = kept.is_some() && fs::write(&file, "../..\n").is_ok();
            let evidence = "it points git at another configuration".to_owned();
            denials.push(written(file, "git_commondir", evidence, reverted, kept.as_deref()));
        }
    }

    /// Looks at every file of the writable roots, parents first, as far as the budget reaches.
    fn walk(&self, denials: &mut Vec<Denial>) -> Scanned {
        let mut queue: VecDeque<PathBuf> = self.roots.iter().cloned().collect();
        let mut scanned = Scanned { entries: 0, complete: true };
        let mut linked: BTreeMap<(u64, u64), (u64, u64, PathBuf)> = BTreeMap::new();
        while let Some(directory) = queue.pop_front() {
            let Ok(listing) = fs::read_dir(&directory) else { continue };
            let (mut objects, mut refs) = (false, false);
            let mut below = Vec::new();
            for entry in listing.filter_map(Result::ok) {
                if scanned.entries >= self.entries {
                    scanned.complete = false;
                    break;
                }
                scanned.entries += 1;
                let name = entry.file_name();
                objects |= name == "objects";
                refs |= name == "refs";
                let Ok(kind) = entry.file_type() else { continue };
                if kind.is_dir() {
                    below.push((name, entry.path()));
                } else if kind.is_file()
                    && let Ok(metadata) = entry.metadata()
                    && metadata.nlink() > 1
                {
                    let seen = linked.entry((metadata.dev(), metadata.ino())).or_insert_with(|| {
                        let changed = if changed(&metadata) >= self.since { metadata.nlink() } else { 0 };
                        (changed, 0, entry.path())
                    });
                    seen.1 += 1;
                }
            }
            if objects && refs {
                self.repository(&directory, denials);
                // Objects are content under their own checksum; what matters has been looked at.
                below.retain(|(name, _)| name != "objects" && name != "refs" && name != "logs");
            }
            // A root inside another is looked at once.
            queue.extend(below.into_iter().map(|(_, path)| path).filter(|path| !self.roots.contains(path)));
        }
        if scanned.complete {
            for (links, seen, path) in linked.into_values() {
                if links > seen {
                    let evidence = format!("{} of its {links} names lie outside the project", links - seen);
                    denials.push(written(path, "hard_link", evidence, false, None));
                }
            }
        }
        scanned
    }

    /// A directory that git would take for a repository: its configuration and hooks, if the command wrote them.
    fn repository(&self, directory: &Path, denials: &mut Vec<Denial>) {
        let own = self.git_directories.iter().any(|known| known == directory);
        if own && self.git != GitAccess::Open {
            return;
        }
        // The user opened this repository by name: what is found is said and left.
        let reverts = self.reverts() && !own;
        for name in ["config", "config.worktree"] {
            let path = directory.join(name);
            if self.fresh(&path) {
                self.configuration(path, reverts, denials);
            }
        }
        let commondir = directory.join("commondir");
        if self.fresh(&commondir) {
            let kept = if reverts { self.put_away(&commondir) } else { None };
            let evidence = "it points git at another configuration".to_owned();
            denials.push(written(commondir, "git_commondir", evidence, kept.is_some(), kept.as_deref()));
        }
        let hooks = directory.join("hooks");
        for name in names(&hooks) {
            let path = hooks.join(&name);
            let executable =
                fs::metadata(&path).is_ok_and(|metadata| metadata.is_file() && metadata.mode() & 0o111 != 0);
            if executable
                && !name.as_bytes().ends_with(b".sample")
                && (self.fresh(&path) || self.fresh(&hooks))
            {
                let kept = if reverts { self.put_away(&path) } else { None };
                let evidence = "git would execute it".to_owned();
                denials.push(written(path, "git_hook", evidence, kept.is_some(), kept.as_deref()));
            }
        }
    }

    fn configuration(&self, path: PathBuf, reverts: bool, denials: &mut Vec<Denial>) {
        // What a symlink leads to is configuration as well, and cannot be edited safely: the link goes.
        let text = fs::read(&path).unwrap_or_default();
        let link = fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_symlink());
        let (evidence, clean) = match config::hostile(&text) {
            Ok(hostile) if hostile.is_empty() => return,
            Ok(hostile) => {
                let names: Vec<String> = hostile.iter().map(config::Entry::name).collect();
                let clean = (!link).then(|| config::without(&text, &hostile));
                (format!("git would follow {}", names.join(", ")), clean)
            }
            Err(()) => ("it is not understood as a git configuration".to_owned(), None),
        };
        let mut kept = None;
        let mut reverted = false;
        if reverts {
            kept = self.put_away(&path);
            reverted = kept.is_some();
            if let Some(clean) = clean {
                reverted = reverted && fs::write(&path, clean).is_ok();
            }
        }
        denials.push(written(path, "git_config", evidence, reverted, kept.as_deref()));
    }

    fn fresh(&self, path: &Path) -> bool {
        fs::symlink_metadata(path).is_ok_and(|metadata| changed(&metadata) >= self.since)
    }

    /// Moves something out of the project, to where its user finds it; `None` when that fails.
    fn put_away(&self, path: &Path) -> Option<PathBuf> {
        fs::create_dir_all(&self.quarantine).ok()?;
        let name = path.file_name().unwrap_or(OsStr::new("file"));
        let place = (0..1000).map(|number| {
            let mut numbered = OsString::from(format!("{number}-"));
            numbered.push(name);
            self.quarantine.join(numbered)
        });
        let place = place.into_iter().find(|place| fs::symlink_metadata(place).is_err())?;
        match fs::rename(path, &place) {
            Ok(()) => Some(place),
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
                // The copy is a courtesy; that the name is gone is what counts.
                let _ = copy(path, &place, 0);
                let removed = if fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir()) {
                    fs::remove_dir_all(path)
                } else {
                    fs::remove_file(path)
                };
                removed.ok().map(|()| place)
            }
            Err(_) => None,
        }
    }
}

fn copy(from: &Path, to: &Path, depth: usize) -> io::Result<()> {
    /// Deeper trees than any configuration has.
    const DEEPEST: usize = 16;
    let metadata = fs::symlink_metadata(from)?;
    if metadata.is_symlink() {
        std::os::unix::fs::symlink(fs::read_link(from)?, to)
    } else if metadata.is_dir() && depth < DEEPEST {
        fs::create_dir(to)?;
        for entry in fs::read_dir(from)? {
            let name = entry?.file_name();
            copy(&from.join(&name), &to.join(&name), depth + 1)?;
        }
        Ok(())
    } else if metadata.is_file() {
        fs::copy(from, to)?;
        fs::set_permissions(to, fs::Permissions::from_mode(0o600))
    } else {
        Ok(())
    }
}

fn names(directory: &Path) -> impl Iterator<Item = OsString> {
    fs::read_dir(directory).into_iter().flatten().filter_map(Result::ok).map(|entry| entry.file_name())
}

fn changed(metadata: &Metadata) -> i128 {
    i128::from(metadata.ctime()) * 1_000_000_000 + i128::from(metadata.ctime_nsec())
}

fn nanoseconds(time: SystemTime) -> i128 {
    time.duration_since(UNIX_EPOCH).ok().and_then(|since| i128::try_from(since.as_nanos()).ok()).unwrap_or(0)
}

fn written(path: PathBuf, rule: &str, evidence: String, reverted: bool, kept: Option<&Path>) -> Denial {
    let advice = match (rule, kept) {
        ("hard_link", _) => {
            "look at the file's other name; delete this one first if a copy is meant".to_owned()
        }
        (_, Some(kept)) => format!(
            "what was there is kept at {} while this session lasts; ask for the name to be taken off the protected list \
             if it is needed",
            kept.display()
        ),
        (_, None) => "look at it before using git or an editor here".to_owned(),
    };
    Denial {
        operation: DeniedOperation::Write(path),
        rule: rule.to_owned(),
        certainty: Certainty::Certain,
        reverted,
        evidence,
        advice,
    }
}
