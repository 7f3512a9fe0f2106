//! The private directory of an executor: what its commands see as `/tmp`.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// A directory of mode 0700 below the system's temporary directory, removed with the executor.
#[derive(Debug)]
pub(crate) struct Session {
    directory: TempDir,
    base: PathBuf,
}

impl Session {
    pub(crate) fn create() -> io::Result<Self> {
        let directory = tempfile::Builder::new().prefix("cmdgate-").tempdir()?;
        let base = fs::canonicalize(directory.path())?;
        fs::create_dir(base.join("tmp"))?;
        // As /tmp everywhere; the directory above it keeps other users out.
        fs::set_permissions(base.join("tmp"), fs::Permissions::from_mode(0o1777))?;
        Ok(Self { directory, base })
    }

    /// What is seen as `/tmp`.
    pub(crate) fn tmp(&self) -> PathBuf {
        self.base.join("tmp")
    }

    /// Where what a command may not leave in the project is put.
    pub(crate) fn quarantine(&self) -> PathBuf {
        self.base.join("put-away")
    }

    /// A new directory beside it.
    pub(crate) fn subdirectory(&self, prefix: &str) -> io::Result<TempDir> {
        tempfile::Builder::new().prefix(prefix).tempdir_in(&self.base)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // A command may have taken its own permission away: give it back, so that all of it can be removed.
        unlock(self.directory.path(), 0);
    }
}

fn unlock(directory: &Path, depth: usize) {
    // Deeper trees are removed as far as they can be.
    if depth > 64 {
        return;
    }
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.filter_map(Result::ok) {
        let Ok(metadata) = entry.metadata() else { continue };
        if metadata.is_dir() {
            if metadata.permissions().mode() & 0o700 != 0o700 {
                // Failing leaves the directory where it is.
                let _ = fs::set_permissions(entry.path(), fs::Permissions::from_mode(0o700));
            }
            unlock(&entry.path(), depth + 1);
        }
    }
}
