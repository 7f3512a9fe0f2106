//! Where the files of a plan may stand, and the copies that are kept of them.
//!
//! A project's files are whatever its authors made them: links that lead elsewhere, pipes, files that happen to have the name of
//! a copy. So no link is followed out of a project, a copy is only ever a new file, and what has a copy's name without being
//! provably one is left as it is.

use super::{InstallError, document};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// How many copies of one file are kept.
const MOST: usize = 32;

/// The copies that stand beside a file, the latest last.
#[derive(Debug)]
pub(super) struct Copies {
    /// Those that are there; not all of them need be this program's.
    pub(super) found: Vec<PathBuf>,
    /// The name of the next one; none when there are too many.
    next: Option<PathBuf>,
}

impl Copies {
    /// Looks for the copies of a file.
    ///
    /// # Errors
    ///
    /// When something that is not a regular file has the name of a copy: a link, a directory, a pipe.
    pub(super) fn of(file: &Path) -> Result<Self, InstallError> {
        let mut found = Vec::new();
        let mut next = Some(numbered(file, 0));
        for number in 0..MOST {
            let path = numbered(file, number);
            match fs::symlink_metadata(&path) {
                Ok(meta) if meta.is_file() => {
                    found.push(path);
                    // Not a name between them, so that the last is always the latest.
                    next = (number + 1 < MOST).then(|| numbered(file, number + 1));
                }
                Ok(_) => return Err(InstallError::InTheWay { path, what: "it is not a regular file" }),
                Err(error) if is_absent(&error) => {}
                Err(source) => return Err(InstallError::Io { path, source }),
            }
        }
        Ok(Self { found, next })
    }

    /// The name of a new copy.
    ///
    /// # Errors
    ///
    /// When there are too many already.
    pub(super) fn next(&self, file: &Path) -> Result<PathBuf, InstallError> {
        self.next.clone().ok_or_else(|| InstallError::InTheWay {
            path: numbered(file, MOST - 1),
            what: "it is the last of too many copies",
        })
    }

    /// The latest copy.
    pub(super) fn last(&self) -> Option<PathBuf> {
        self.found.last().cloned()
    }
}

/// The text of a copy; none when it cannot be read as one.
pub(super) fn text(copy: &Path) -> Option<String> {
    if !fs::symlink_metadata(copy).is_ok_and(|meta| meta.is_file()) {
        return None;
    }
    document::read(copy).ok().flatten()
}

/// Makes a copy: a whole new file, never through a link and never in the place of another; with the permissions of the
/// original.
pub(super) fn write(copy: &Path, original: &Path, text: &str) -> Result<(), InstallError> {
    let failed = |source: io::Error| InstallError::Io { path: copy.to_path_buf(), source };
    let directory = copy.parent().unwrap_or(Path::new("."));
    let mut new = tempfile::NamedTempFile::new_in(directory).map_err(failed)?;
    new.write_all(text.as_bytes()).map_err(failed)?;
    let permissions = fs::metadata(original).map_err(failed)?.permissions();
    new.as_file().set_permissions(permissions).map_err(failed)?;
    new.persist_noclobber(copy).map_err(|error| failed(error.error))?;
    Ok(())
}

/// Refuses a file that leaves a project, itself or by a directory on the way to it, whether or not it exists already.
pub(super) fn stays_in(project: &Path, file: &Path) -> Result<(), InstallError> {
    let failed = |path: &Path, source: io::Error| InstallError::Io { path: path.to_path_buf(), source };
    let base = fs::canonicalize(project).map_err(|error| failed(project, error))?;
    // The copies stand in the directory of the file, also when the file is a link to somewhere else.
    for start in std::iter::once(file).chain(file.parent()) {
        let mut place = start;
        // What is there may be a link that leads nowhere.
        while let Err(error) = fs::symlink_metadata(place) {
            match place.parent() {
                Some(above) if is_absent(&error) => place = above,
                Some(_) | None => return Err(failed(place, error)),
            }
        }
        let target = match fs::canonicalize(place) {
            Ok(target) => target,
            Err(error) if is_absent(&error) => {
                return Err(InstallError::InTheWay {
                    path: place.to_path_buf(),
                    what: "it is a link that leads nowhere",
                });
            }
            Err(error) => return Err(failed(place, error)),
        };
        if !target.starts_with(&base) {
            return Err(InstallError::LeadsOut { path: place.to_path_buf(), target });
        }
    }
    Ok(())
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// The name of a copy.
pub(super) fn numbered(file: &Path, number: usize) -> PathBuf {
    let mut name = file.file_name().unwrap_or_default().to_os_string();
    name.push(".before-cmdgate");
    if number > 0 {
        name.push(format!("-{number}"));
    }
    file.with_file_name(name)
}
