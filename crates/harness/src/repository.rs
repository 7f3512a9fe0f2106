//! Reads what git's configuration names, so that it can be neutralised: the provider of
//! [`Condition::GitHardened`](cmdgate_classifier::Condition::GitHardened).

use crate::resolve::ReadableRoots;
use cmdgate_classifier::Effects;
use cmdgate_classifier::git_config::{FIXED, harden, supported};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// Reading a configuration takes milliseconds; an `include.path` that names a FIFO would take for ever.
const LIMIT: Duration = Duration::from_secs(5);
/// A configuration longer than this, in bytes, is not read.
const LONGEST: u64 = 4 * 1024 * 1024;

/// The environment under which git runs nothing but itself in every repository that the effects name.
///
/// # Errors
///
/// Why that cannot be had, as a sentence fragment.
pub(crate) fn hardened(
    effects: &Effects<'_>,
    workdir: &Path,
    root: &Path,
    readable: &ReadableRoots,
) -> Result<Vec<(String, String)>, String> {
    let git = Git::find(root)?;
    let directories: BTreeSet<PathBuf> =
        effects.repositories.iter().map(|index| workdir.join(effects.directory(*index))).collect();
    let mut config = Vec::new();
    let mut modules = Vec::new();
    let mut reads = Vec::new();
    for directory in directories {
        if !directory.is_dir() {
            // Git fails before it looks at any configuration.
            continue;
        }
        let listed = git.run(&directory, &["config", "--list", "-z", "--includes"], &[])?;
        // Whatever is asked of git next may read the index, which starts a file system monitor.
        let hardening = harden(&listed, b"");
        let hardened = hardening.environment.as_slice();
        let Some(places) = git.places(&directory, hardened)? else {
            // No repository: only the user's own configuration counts.
            config.extend(listed);
            continue;
        };
        let top = places.top.unwrap_or_else(|| directory.clone());
        reads.extend(hardening.reads.iter().map(|path| top.join(path)));
        if let Some(work_tree) = &hardening.work_tree {
            reads.push(places.git_dir.join(work_tree));
        }
        for (place, what) in
            [(&places.git_dir, "the repository"), (&places.common_dir, "the common directory")]
        {
            readable.holds(place).map_err(|why| format!("{what} {why}"))?;
            holds_its_files(place, readable)?;
        }
        config.extend(listed);
        if top.join(".gitmodules").symlink_metadata().is_ok() {
            let args = ["config", "--list", "-z", "--no-includes", "--file", ".gitmodules"];
            modules.extend(git.run(&top, &args, hardened)?);
        } else {
            for blob in [":.gitmodules", "HEAD:.gitmodules"] {
                // Absent is the usual case, and git says so by failing.
                let args = ["config", "--list", "-z", "--no-includes", "--blob", blob];
                modules.extend(git.run(&top, &args, hardened).unwrap_or_default());
            }
        }
    }
    for path in reads {
        readable
            .holds(&path)
            .map_err(|why| format!("the configuration reads {}, which {why}", path.display()))?;
    }
    let hardening = harden(&config, &modules);
    match hardening.refuse {
        Some(refusal) => Err(format!("the configuration has `{}`, which {}", refusal.key, refusal.why)),
        None => Ok(hardening.environment),
    }
}

/// What git reads of a repository by a fixed name (gitrepository-layout(5)), and follows where it is a symlink.
const FILES: [&str; 13] = [
    "HEAD",
    "config",
    "config.worktree",
    "index",
    "info/attributes",
    "info/exclude",
    "info/grafts",
    "logs",
    "objects",
    "objects/pack",
    "packed-refs",
    "refs",
    "shallow",
];

/// A repository may name another one, whose objects it has too, or lead elsewhere by a symlink.
fn holds_its_files(git_dir: &Path, readable: &ReadableRoots) -> Result<(), String> {
    for name in FILES {
        readable.holds(&git_dir.join(name)).map_err(|why| format!("`{name}` of the repository {why}"))?;
    }
    let objects = git_dir.join("objects");
    let alternates = objects.join("info/alternates");
    readable.holds(&alternates).map_err(|why| format!("the list of further repositories {why}"))?;
    let Ok(listed) = std::fs::read(&alternates) else { return Ok(()) };
    for line in String::from_utf8_lossy(&listed).lines() {
        let further = objects.join(line.trim_matches('"'));
        let outside = |why| format!("the repository has the objects of {}, which {why}", further.display());
        readable.holds(&further).map_err(outside)?;
    }
    Ok(())
}

/// Where a repository lies.
struct Places {
    git_dir: PathBuf,
    common_dir: PathBuf,
    top: Option<PathBuf>,
}

/// The git that the command would run, and its search path.
struct Git {
    program: PathBuf,
    path: OsString,
}

impl Git {
    fn find(root: &Path) -> Result<Self, String> {
        let path = cmdgate_executor::search_path(root);
        let program = std::env::split_paths(&path)
            .map(|entry| entry.join("git"))
            .find(|program| program.is_file())
            .ok_or("git is not installed")?;
        let git = Self { program, path };
        let version = git.run(Path::new("/"), &["version"], &[])?;
        let version = String::from_utf8_lossy(&version);
        if supported(&version) { Ok(git) } else { Err(format!("{} is too old", version.trim())) }
    }

    /// The places of the repository around `directory`; none when there is no repository.
    fn places(&self, directory: &Path, hardened: &[(String, String)]) -> Result<Option<Places>, String> {
        let args = ["rev-parse", "--path-format=absolute", "--git-dir", "--git-common-dir"];
        let Ok(listed) = self.run(directory, &args, hardened) else { return Ok(None) };
        let text = String::from_utf8(listed).map_err(|_| "the repository's path is not UTF-8".to_owned())?;
        let mut lines = text.lines();
        let (Some(git_dir), Some(common_dir)) = (lines.next(), lines.next()) else { return Ok(None) };
        let top = self
            .run(directory, &["rev-parse", "--path-format=absolute", "--show-toplevel"], hardened)
            .ok()
            .and_then(|top| String::from_utf8(top).ok())
            .map(|top| PathBuf::from(top.trim_end_matches('\n')));
        Ok(Some(Places { git_dir: git_dir.into(), common_dir: common_dir.into(), top }))
    }

    /// What git prints, under the fixed part of the hardening and what more of it is known already.
    fn run(&self, directory: &Path, args: &[&str], hardened: &[(String, String)]) -> Result<Vec<u8>, String> {
        let mut command = Command::new(&self.program);
        command
            .args(args)
            .current_dir(directory)
            .env_clear()
            .env("PATH", &self.path)
            .envs(FIXED.iter().copied())
            .envs(hardened.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        // As in the executor's environment, which passes HOME and not XDG_CONFIG_HOME.
        if let Some(home) = std::env::var_os("HOME") {
            command.env("HOME", home);
        }
        let mut child = command.spawn().map_err(|error| format!("git does not start: {error}"))?;
        let Some(stdout) = child.stdout.take() else { return Err("git has no output".to_owned()) };
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let read = stdout.take(LONGEST + 1).read_to_end(&mut bytes).map(|_| bytes);
            // The receiver is gone when the time was up.
            let _ = sender.send(read);
        });
        let read = receiver.recv_timeout(LIMIT);
        if read.is_err() {
            let _ = child.kill();
        }
        let status = child.wait().map_err(|error| format!("git is lost: {error}"))?;
        match read {
            Err(_) => Err("its configuration takes too long to read".to_owned()),
            Ok(Err(error)) => Err(format!("git's output cannot be read: {error}")),
            Ok(Ok(bytes)) if bytes.len() as u64 > LONGEST => Err("its configuration is too long".to_owned()),
            Ok(Ok(bytes)) if status.success() => Ok(bytes),
            Ok(Ok(_)) => Err(format!("`git {}` failed ({status})", args.join(" "))),
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_repository_that_leads_out_is_refused() {
        let scratch = tempfile::tempdir().unwrap();
        let scratch = scratch.path().canonicalize().unwrap();
        let (root, outside) = (scratch.join("p"), scratch.join("outside"));
        for directory in [root.join(".git/objects/info"), root.join("other/objects"), outside.join("objects")]
        {
            fs::create_dir_all(directory).unwrap();
        }
        fs::write(outside.join("secret"), "s").unwrap();
        let git_dir = root.join(".git");
        let readable = ReadableRoots::new([root.as_path()]);
        let held = || holds_its_files(&git_dir, &readable);
        assert_eq!(held(), Ok(()));
        for (name, target) in [
            ("info", "../../outside"),
            ("HEAD", "../../outside/secret"),
            ("objects/pack", "../../../outside"),
        ] {
            symlink(target, git_dir.join(name)).unwrap();
            assert!(held().is_err(), "{name}");
            fs::remove_file(git_dir.join(name)).unwrap();
        }
        let alternates = git_dir.join("objects/info/alternates");
        for (line, fine) in [
            ("../../other/objects\n", true),
            ("../../../outside/objects\n", false),
            ("\"../../../outside/objects\"\n", false),
            (&format!("../../other/objects\n{}/objects\n", outside.display()), false),
        ] {
            fs::write(&alternates, line).unwrap();
            assert_eq!(held().is_ok(), fine, "{line}");
        }
    }
}
