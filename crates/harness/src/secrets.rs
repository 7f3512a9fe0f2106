//! Finds the files of a project that the policy denies to read, so that the sandbox can hide them.
//!
//! Rules on paths meet the paths that a command names. `grep -r . ` names none of the files that it opens, so what a
//! rule denies is taken out of the command's view altogether.

use cmdgate_policy::{Act, Effect, Policy, Timestamp};
use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};

/// How many entries are looked at, those nearest to the root first.
const MOST_ENTRIES: usize = 20_000;
/// How many paths are hidden one by one.
const MOST_HIDDEN: usize = 500;
/// Directories with very many files that nobody wrote, by the end of their path.
const SKIPPED: [&str; 4] = [".git/objects", ".git/lfs/objects", "node_modules", "target"];

/// What is to be hidden.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Secrets {
    /// Real paths of files and directories.
    pub paths: Vec<PathBuf>,
    /// The project has more entries than are looked at, or more secrets than are hidden one by one.
    pub incomplete: bool,
}

impl Secrets {
    /// What is said when not everything was looked at.
    pub const WARNING: &str = "the project has too many files to look at all of them, or too many that rules deny to \
                               read: some of those may be visible to the command";
}

/// The files and directories below `root`, a real path, that a rule denies to read.
pub fn find(root: &Path, policy: &Policy, now: Timestamp) -> Secrets {
    let mut found = Secrets::default();
    let mut directories = VecDeque::from([root.to_path_buf()]);
    let mut seen = 0_usize;
    while let Some(directory) = directories.pop_front() {
        // What cannot be listed here cannot be listed by the command either: it runs as the same user.
        let Ok(entries) = fs::read_dir(&directory) else { continue };
        for entry in entries.flatten() {
            seen += 1;
            if seen > MOST_ENTRIES || found.paths.len() >= MOST_HIDDEN {
                found.incomplete = true;
                return found;
            }
            let path = entry.path();
            let Ok(kind) = entry.file_type() else { continue };
            if is_denied(root, &path, policy, now) {
                // A symlink is hidden by what it leads to, as far as that lies in the project.
                match fs::canonicalize(&path) {
                    Ok(real) if real.starts_with(root) && real != root => hide(&real, root, &mut found),
                    Ok(_) | Err(_) => {}
                }
            } else if kind.is_dir() && !SKIPPED.iter().any(|skipped| path.ends_with(skipped)) {
                directories.push_back(path);
            }
        }
    }
    found
}

fn hide(path: &Path, root: &Path, found: &mut Secrets) {
    // The sandbox takes paths as text: of one that is none, the directory goes.
    let path = path.ancestors().find(|path| path.to_str().is_some_and(|text| !text.ends_with('*')));
    match path {
        Some(path) if path != root && path.starts_with(root) => {
            if !found.paths.iter().any(|hidden| hidden == path) {
                found.paths.push(path.to_path_buf());
            }
        }
        Some(_) | None => found.incomplete = true,
    }
}

fn is_denied(root: &Path, path: &Path, policy: &Policy, now: Timestamp) -> bool {
    let mut names = vec![path.to_string_lossy()];
    if let Ok(relative) = path.strip_prefix(root) {
        names.push(relative.to_string_lossy());
    }
    let ruling = policy.check_names(Act::Read, &names, Some(now));
    ruling.effect == Effect::Deny && ruling.rule.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(policy: &Policy, files: &[&str]) -> Vec<String> {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for file in files {
            let path = root.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        }
        let found = find(&root, policy, Timestamp::from_unix_seconds(0));
        assert!(!found.incomplete);
        let mut names: Vec<String> = found
            .paths
            .iter()
            .map(|path| path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn what_a_rule_denies_is_found_wherever_it_lies() {
        // contract: P8
        let policy = Policy::default().layer("app").deny_read("secrets/*").deny_read("private");
        let files = [
            ".env",
            "a.txt",
            "deep/er/.env",
            "deep/key.pem",
            "secrets/prod.txt",
            "private/x/y",
            "node_modules/a/cert.pem",
        ];
        assert_eq!(
            names(&policy, &files),
            [".env", "deep/er/.env", "deep/key.pem", "private", "secrets/prod.txt"]
        );
    }

    #[test]
    fn a_default_hides_nothing() {
        assert_eq!(names(&Policy::deny_all(), &["a", ".env"]), <[&str; 0]>::default());
    }

    #[cfg(unix)]
    #[test]
    fn a_symlink_hides_what_it_leads_to() {
        // contract: P8
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::write(root.join("settings"), "SECRET=1").unwrap();
        std::os::unix::fs::symlink("settings", root.join(".env")).unwrap();
        std::os::unix::fs::symlink("/etc/hostname", root.join("x.pem")).unwrap();
        let found = find(&root, &Policy::default(), Timestamp::from_unix_seconds(0));
        assert_eq!(found.paths, [root.join("settings")]);
    }

    #[test]
    fn a_huge_project_is_looked_at_in_part_and_that_is_said() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for n in 0..=MOST_HIDDEN {
            fs::write(root.join(format!("{n}.pem")), "").unwrap();
        }
        let found = find(&root, &Policy::default(), Timestamp::from_unix_seconds(0));
        assert!(found.incomplete && found.paths.len() == MOST_HIDDEN);
    }
}
