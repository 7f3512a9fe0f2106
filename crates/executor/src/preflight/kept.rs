//! Keeping what the preflight found for the next process of the same user.
//!
//! An answer is kept with everything that it could depend on: both programs, the kernel and this boot of it, the user and
//! what the user may do, the namespaces, and the settings that forbid namespaces. It counts only where all of that is the
//! same to the letter, for a day, and only when it was good: a failure is found anew each time.
//!
//! The directory belongs to the user alone, which is checked each time, and never lies where a command may write: see
//! [`usable`]. Whoever could write there all the same gains little. An answer says which line to use, not whether it
//! holds: a sandbox that cannot be set up by that line fails visibly, and the preflight is then made anew.

use std::fmt::Write as _;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use super::Ready;
use crate::find::Binary;
use crate::sandbox::Rung;
use crate::sandbox::bwrap::Features;

/// How long an answer counts.
const AGE: Duration = Duration::from_hours(24);
/// A file larger than this is none of ours.
const LARGEST: u64 = 64 * 1024;
/// How many files may lie in the directory before those of other boots and programs are cleared away.
const MOST_FILES: usize = 16;

/// An answer as it is written.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer {
    /// [`Situation`], to the letter.
    situation: String,
    /// Seconds since 1970.
    made: u64,
    version: String,
    rung: String,
    size: bool,
}

/// Everything that an answer depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Situation(String);

impl Situation {
    /// Looks at this process and this machine. `None` when something cannot be told, or when another program stands
    /// between this process and the kernel (ptrace(2)): then nothing is kept.
    pub(super) fn gather(binary: &Binary, homes: &[PathBuf]) -> Option<Self> {
        let read = |path: &str| fs::read_to_string(path).ok();
        let mut text = format!("executor {}\n{binary:?}\n{homes:?}\n", env!("CARGO_PKG_VERSION"));
        let own = fs::metadata("/proc/self/exe").ok()?;
        let root = fs::metadata("/").ok()?;
        let identity = |file: &fs::Metadata| {
            let times = (file.mtime(), file.mtime_nsec(), file.ctime(), file.ctime_nsec());
            (file.dev(), file.ino(), file.size(), times)
        };
        writeln!(text, "{:?} {:?}", identity(&own), (root.dev(), root.ino())).ok()?;
        for file in ["random/boot_id", "osrelease", "version"] {
            text += &read(&format!("/proc/sys/kernel/{file}"))?;
        }
        let status = read("/proc/self/status")?;
        let mut traced = true;
        for line in status.lines() {
            match line.split_once(':') {
                Some(("TracerPid", pid)) => traced = pid.trim() != "0",
                Some((
                    "Uid" | "Gid" | "Groups" | "CapInh" | "CapPrm" | "CapEff" | "CapBnd" | "CapAmb"
                    | "NoNewPrivs" | "Seccomp" | "Seccomp_filters",
                    _,
                )) => {
                    text += line;
                    text.push('\n');
                }
                Some(_) | None => {}
            }
        }
        if traced {
            return None;
        }
        for name in ["user", "mnt", "pid", "net", "ipc", "uts", "cgroup"] {
            // A kernel without one of them has none to tell apart.
            writeln!(text, "{name} {:?}", fs::read_link(format!("/proc/self/ns/{name}")).ok()).ok()?;
        }
        for file in [
            "/proc/self/uid_map",
            "/proc/self/gid_map",
            "/proc/self/attr/current",
            "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
            "/proc/sys/kernel/unprivileged_userns_clone",
            "/proc/sys/user/max_user_namespaces",
        ] {
            writeln!(text, "{file} {:?}", read(file)).ok()?;
        }
        Some(Self(text))
    }

    /// The name of its file. Two situations with one name take turns, no more.
    fn file_name(&self) -> String {
        let sum = self.0.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
            (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        format!("preflight-{sum:016x}.json")
    }
}

/// The directory to keep answers in, unless a command of this run could write there.
pub(crate) fn usable<'a>(directory: Option<&'a Path>, writable: &[PathBuf]) -> Option<&'a Path> {
    let directory = directory.filter(|directory| directory.is_absolute())?;
    // It may not have been made yet; what leads to it is looked at then.
    let there = directory.ancestors().find_map(|step| fs::canonicalize(step).ok())?;
    let within = |path: &Path| writable.iter().any(|root| path.starts_with(root));
    (!within(directory) && !within(&there)).then_some(directory)
}

/// What was kept for this very situation.
pub(super) fn recall(directory: &Path, situation: &Situation, binary: &Binary) -> Option<Ready> {
    let answer = read(directory, situation).ok()?;
    let age = now().checked_sub(answer.made)?;
    if answer.situation != situation.0 || age > AGE.as_secs() {
        return None;
    }
    let rung =
        [Rung::SharedProc, Rung::Reduced, Rung::Full].into_iter().find(|rung| rung.name() == answer.rung)?;
    let features = Features { rung, size: answer.size, root: rustix::process::geteuid().is_root() };
    Some(Ready { binary: binary.clone(), version: answer.version, features, recalled: true })
}

/// Keeps an answer. Not being able to is no fault: the next process makes its own preflight.
pub(super) fn keep(directory: &Path, situation: &Situation, ready: &Ready) {
    let _ = write(directory, situation, ready);
}

/// Drops what was kept for this situation.
pub(super) fn drop_kept(directory: &Path, situation: &Situation) {
    let _ = fs::remove_file(directory.join(situation.file_name()));
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

fn refused(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, what)
}

/// Fails unless the directory belongs to this user alone.
fn check(directory: &Path) -> io::Result<()> {
    let metadata = fs::symlink_metadata(directory)?;
    let own = metadata.uid() == rustix::process::geteuid().as_raw();
    if metadata.is_dir() && own && metadata.mode() & 0o777 == 0o700 {
        return Ok(());
    }
    Err(refused("the directory is not this user's alone"))
}

fn read(directory: &Path, situation: &Situation) -> io::Result<Answer> {
    check(directory)?;
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = File::options()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(directory.join(situation.file_name()))?;
    let metadata = file.metadata()?;
    let own = metadata.uid() == rustix::process::geteuid().as_raw();
    // One name, or none any more, when another process has just put a newer answer in its place.
    let ours = metadata.is_file() && own && metadata.mode() & 0o022 == 0 && metadata.nlink() <= 1;
    if !ours || metadata.size() > LARGEST {
        return Err(refused("the file is not one that was kept"));
    }
    let mut text = Vec::new();
    file.take(LARGEST).read_to_end(&mut text)?;
    serde_json::from_slice(&text).map_err(io::Error::other)
}

fn write(directory: &Path, situation: &Situation, ready: &Ready) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    check(directory)?;
    let answer = Answer {
        situation: situation.0.clone(),
        made: now(),
        version: ready.version.clone(),
        rung: ready.features.rung.name().to_owned(),
        size: ready.features.size,
    };
    clear(directory);
    // In one piece: whoever reads meanwhile finds the old answer or the new one.
    let mut file = tempfile::Builder::new().prefix(".preflight-").tempfile_in(directory)?;
    file.write_all(&serde_json::to_vec(&answer)?)?;
    file.persist(directory.join(situation.file_name()))?;
    Ok(())
}

/// Clears old answers away, once there are many.
fn clear(directory: &Path) {
    let names: Vec<PathBuf> = fs::read_dir(directory)
        .into_iter()
        .flatten()
        .filter_map(Result::ok)
        .filter(|entry| {
            let name = entry.file_name();
            [&b"preflight-"[..], b".preflight-"].iter().any(|start| name.as_bytes().starts_with(start))
        })
        .map(|entry| entry.path())
        .collect();
    if names.len() >= MOST_FILES {
        for path in names {
            // Gone already is as good, and what cannot be removed is not counted on.
            let _ = fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    struct Set {
        _base: tempfile::TempDir,
        directory: PathBuf,
        situation: Situation,
        ready: Ready,
    }

    fn set() -> Set {
        let base = tempfile::tempdir().unwrap();
        let directory = base.path().join("state/preflight");
        let bwrap = base.path().join("bwrap");
        fs::write(&bwrap, "x").unwrap();
        fs::set_permissions(&bwrap, fs::Permissions::from_mode(0o755)).unwrap();
        let binary = crate::find::bwrap(Some(&bwrap), &[], &[]).unwrap();
        let situation =
            Situation::gather(&binary, &[PathBuf::from("/home/u")]).expect("tests are not traced");
        let features = Features { rung: Rung::Full, size: true, root: rustix::process::geteuid().is_root() };
        let ready = Ready { binary, version: "0.8.0".to_owned(), features, recalled: false };
        Set { _base: base, directory, situation, ready }
    }

    impl Set {
        fn recall(&self) -> Option<Ready> {
            recall(&self.directory, &self.situation, &self.ready.binary)
        }

        fn file(&self) -> PathBuf {
            self.directory.join(self.situation.file_name())
        }

        /// Rewrites one field of the file.
        fn change(&self, field: &str, value: serde_json::Value) {
            let mut answer: serde_json::Value =
                serde_json::from_slice(&fs::read(self.file()).unwrap()).unwrap();
            answer[field] = value;
            fs::write(self.file(), answer.to_string()).unwrap();
        }
    }

    #[test]
    fn what_is_kept_is_recalled_in_the_same_situation_only() {
        let set = set();
        assert!(set.recall().is_none());
        keep(&set.directory, &set.situation, &set.ready);
        let recalled = set.recall().unwrap();
        assert_eq!((recalled.version.as_str(), recalled.features), ("0.8.0", set.ready.features));
        assert!(recalled.recalled);
        assert_eq!(fs::metadata(&set.directory).unwrap().mode() & 0o777, 0o700);
        assert_eq!(fs::metadata(set.file()).unwrap().mode() & 0o777, 0o600);

        // Another situation under the same name, as with a colliding sum.
        let other = Situation(set.situation.0.clone() + "x");
        fs::rename(set.file(), set.directory.join(other.file_name())).unwrap();
        assert!(recall(&set.directory, &other, &set.ready.binary).is_none());
        assert!(set.recall().is_none());
    }

    #[test]
    fn a_situation_tells_programs_homes_and_the_machine_apart() {
        let set = set();
        let again = |binary: &Binary, homes: &[PathBuf]| Situation::gather(binary, homes).unwrap();
        let homes = [PathBuf::from("/home/u")];
        assert_eq!(again(&set.ready.binary, &homes), set.situation);
        assert_ne!(again(&set.ready.binary, &[]), set.situation);
        // The same bytes with the same time of change, and yet not the same file.
        let path = &set.ready.binary.path;
        let modified = fs::metadata(path).unwrap().modified().unwrap();
        fs::write(path, "y").unwrap();
        File::options().write(true).open(path).unwrap().set_modified(modified).unwrap();
        let changed = crate::find::bwrap(Some(path), &[], &[]).unwrap();
        assert_ne!(again(&changed, &homes), set.situation);
        for part in ["boot_id", "CapEff", "Seccomp", "Uid", "user", "uid_map", "max_user_namespaces"] {
            let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
            let part = if part == "boot_id" { boot.as_str() } else { part };
            assert!(set.situation.0.contains(part), "{part}");
        }
    }

    #[test]
    fn an_old_answer_and_one_from_the_future_do_not_count() {
        let set = set();
        keep(&set.directory, &set.situation, &set.ready);
        set.change("made", (now() - AGE.as_secs() + 60).into());
        assert!(set.recall().is_some());
        for made in [now() - AGE.as_secs() - 60, now() + 3600, 0, u64::MAX] {
            set.change("made", made.into());
            assert!(set.recall().is_none(), "{made}");
        }
    }

    #[test]
    fn a_file_that_was_tampered_with_does_not_count() {
        let set = set();
        let kept = || keep(&set.directory, &set.situation, &set.ready);
        kept();
        for (field, value) in [
            ("rung", serde_json::json!("none")),
            ("rung", serde_json::json!(1)),
            ("size", serde_json::json!("yes")),
            ("situation", serde_json::json!("")),
            ("more", serde_json::json!(1)),
        ] {
            set.change(field, value);
            assert!(set.recall().is_none(), "{field}");
            kept();
        }
        for text in ["", "{}", "null", "[]", "{\"situation\":"] {
            fs::write(set.file(), text).unwrap();
            assert!(set.recall().is_none(), "{text}");
        }
        kept();
        let text = fs::read(set.file()).unwrap();
        // Larger than anything that is written.
        fs::write(set.file(), [text, vec![b' '; 65_536]].concat()).unwrap();
        assert!(set.recall().is_none());
        kept();
        // Written by others, linked from elsewhere, or not a file.
        fs::set_permissions(set.file(), fs::Permissions::from_mode(0o622)).unwrap();
        assert!(set.recall().is_none());
        kept();
        let elsewhere = set.directory.join("../elsewhere");
        fs::hard_link(set.file(), &elsewhere).unwrap();
        assert!(set.recall().is_none());
        fs::remove_file(set.file()).unwrap();
        symlink(&elsewhere, set.file()).unwrap();
        assert!(set.recall().is_none());
        fs::remove_file(set.file()).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            set.file(),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR,
            0,
        )
        .unwrap();
        assert!(set.recall().is_none());
    }

    #[test]
    fn a_directory_that_others_can_reach_is_not_used() {
        let set = set();
        keep(&set.directory, &set.situation, &set.ready);
        for mode in [0o770, 0o707, 0o755, 0o701] {
            fs::set_permissions(&set.directory, fs::Permissions::from_mode(mode)).unwrap();
            assert!(set.recall().is_none(), "{mode:o}");
        }
        fs::set_permissions(&set.directory, fs::Permissions::from_mode(0o700)).unwrap();
        assert!(set.recall().is_some());
        let aside = set.directory.with_file_name("aside");
        fs::rename(&set.directory, &aside).unwrap();
        symlink(&aside, &set.directory).unwrap();
        assert!(set.recall().is_none());
        fs::remove_file(aside.join(set.situation.file_name())).unwrap();
        keep(&set.directory, &set.situation, &set.ready);
        assert!(!aside.join(set.situation.file_name()).exists());
    }

    #[test]
    fn many_at_once_never_find_half_an_answer() {
        let set = set();
        keep(&set.directory, &set.situation, &set.ready);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        keep(&set.directory, &set.situation, &set.ready);
                        assert!(set.recall().is_some());
                    }
                });
            }
        });
        assert_eq!(fs::read_dir(&set.directory).unwrap().count(), 1);
    }

    #[test]
    fn old_answers_do_not_pile_up() {
        let set = set();
        for count in 0..100 {
            keep(&set.directory, &Situation(format!("{count}")), &set.ready);
        }
        assert!(fs::read_dir(&set.directory).unwrap().count() <= MOST_FILES);
    }

    #[test]
    fn nothing_is_kept_where_a_command_may_write() {
        let base = tempfile::tempdir().unwrap();
        let base = fs::canonicalize(base.path()).unwrap();
        fs::create_dir(base.join("project")).unwrap();
        symlink(base.join("project"), base.join("link")).unwrap();
        let writable = [base.join("project")];
        assert_eq!(usable(None, &writable), None);
        for inside in ["project/state", "project/a/b/c", "link/state", "project"] {
            assert_eq!(usable(Some(&base.join(inside)), &writable), None, "{inside}");
        }
        let outside = base.join("state/new");
        assert_eq!(usable(Some(&outside), &writable), Some(outside.as_path()));
        assert_eq!(usable(Some(Path::new("state")), &writable), None);
    }
}
