//! Finding a bubblewrap that may be trusted.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Where bubblewrap is looked for first; then in the absolute entries of `PATH`.
const PLACES: &[&str] = &["/usr/bin/bwrap", "/usr/local/bin/bwrap", "/run/current-system/sw/bin/bwrap"];

/// A file that may be executed, and how to recognise it again.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Binary {
    /// Its real path.
    pub(crate) path: PathBuf,
    /// Whether it gains privileges when executed.
    pub(crate) set_id: bool,
    device: u64,
    inode: u64,
    modified: (i64, i64),
    /// When its content, owner or mode was last changed, which nobody can set at will (inode(7)).
    changed: (i64, i64),
    size: u64,
}

/// The first bubblewrap that may be trusted, or why each one found may not.
pub(crate) fn bwrap(
    chosen: Option<&Path>,
    search: &[PathBuf],
    untrusted: &[PathBuf],
) -> Result<Binary, String> {
    if let Some(path) = chosen {
        return vet(path, untrusted).map_err(|problem| format!("{}: {problem}", path.display()));
    }
    let mut problems = Vec::new();
    let further = search.iter().filter(|entry| entry.is_absolute()).map(|entry| entry.join("bwrap"));
    for path in PLACES.iter().map(PathBuf::from).chain(further) {
        if !path.exists() {
            continue;
        }
        match vet(&path, untrusted) {
            Ok(binary) => return Ok(binary),
            Err(problem) => problems.push(format!("{}: {problem}", path.display())),
        }
    }
    if problems.is_empty() {
        problems.push("bubblewrap (`bwrap`) was not found".to_owned());
    }
    Err(problems.join("; "))
}

/// Whether nobody but root and the caller could have put this file there.
fn vet(path: &Path, untrusted: &[PathBuf]) -> Result<Binary, String> {
    if !path.is_absolute() {
        return Err("the path is not absolute".to_owned());
    }
    let real = fs::canonicalize(path).map_err(|error| error.to_string())?;
    let metadata = fs::metadata(&real).map_err(|error| error.to_string())?;
    if !metadata.is_file() {
        return Err("it is not a file".to_owned());
    }
    if metadata.mode() & 0o111 == 0 {
        return Err("it is not executable".to_owned());
    }
    if let Some(root) = untrusted.iter().find(|root| real.starts_with(root) || path.starts_with(root)) {
        return Err(format!("it lies in {}, which commands may write", root.display()));
    }
    for step in real.ancestors() {
        let metadata = fs::metadata(step).map_err(|error| error.to_string())?;
        let own = rustix::process::geteuid().as_raw();
        if metadata.uid() != 0 && metadata.uid() != own {
            return Err(format!(
                "{} belongs to user {}, who is neither root nor you",
                step.display(),
                metadata.uid()
            ));
        }
        // A sticky directory (like /tmp) that belongs to root lets nobody replace another's file.
        let sticky = metadata.is_dir() && metadata.mode() & 0o1000 != 0 && metadata.uid() == 0;
        if metadata.mode() & 0o022 != 0 && !sticky {
            return Err(format!("{} can be written by others", step.display()));
        }
    }
    Ok(Binary {
        set_id: metadata.mode() & 0o6000 != 0,
        device: metadata.dev(),
        inode: metadata.ino(),
        modified: (metadata.mtime(), metadata.mtime_nsec()),
        changed: (metadata.ctime(), metadata.ctime_nsec()),
        size: metadata.size(),
        path: real,
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn plant(directory: &Path, mode: u32) -> PathBuf {
        let path = directory.join("bwrap");
        fs::write(&path, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    // contract: S25
    #[test]
    fn a_planted_binary_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = plant(directory.path(), 0o755);
        assert!(bwrap(Some(&path), &[], &[]).is_ok());
        let project = [directory.path().to_owned()];
        let problem = bwrap(Some(&path), &[], &project).unwrap_err();
        assert!(problem.contains("which commands may write"), "{problem}");
        plant(directory.path(), 0o777);
        let problem = bwrap(Some(&path), &[], &[]).unwrap_err();
        assert!(problem.contains("written by others"), "{problem}");
        plant(directory.path(), 0o644);
        let problem = bwrap(Some(&path), &[], &[]).unwrap_err();
        assert!(problem.contains("not executable"), "{problem}");
        let problem = bwrap(Some(Path::new("bwrap")), &[], &[]).unwrap_err();
        assert!(problem.contains("not absolute"), "{problem}");
    }

    #[test]
    fn a_symlink_into_the_project_is_refused() {
        let project = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let path = plant(project.path(), 0o755);
        let link = elsewhere.path().join("bwrap");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let roots = [fs::canonicalize(project.path()).unwrap()];
        assert!(bwrap(Some(&link), &[], &roots).is_err());
    }
}
