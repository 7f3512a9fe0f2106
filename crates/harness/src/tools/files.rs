//! Reads, writes and lists files that the gate has let through.
//!
//! The gate decides about the real place of a file. Between that and the access something may put a symlink in its way,
//! so every folder on the way is opened from the one before it, and no symlink is followed any more.

use rustix::fs::{self, AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path};

/// A file larger than this, in bytes, is not read.
const LARGEST: u64 = 16 * 1024 * 1024;
/// As many names of a folder are listed.
const MOST_NAMES: usize = 1000;

/// Opens the folder at `real`, component by component; makes what is missing where `make` says so.
fn open_folder(real: &Path, make: bool) -> io::Result<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut folder = fs::open("/", OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    for component in real.components() {
        match component {
            Component::RootDir | Component::CurDir => {}
            Component::Normal(name) => {
                folder = match fs::openat(&folder, name, flags, Mode::empty()) {
                    Err(Errno::NOENT) if make => {
                        match fs::mkdirat(&folder, name, Mode::from_raw_mode(0o777)) {
                            Ok(()) | Err(Errno::EXIST) => {}
                            Err(error) => return Err(error.into()),
                        }
                        fs::openat(&folder, name, flags, Mode::empty())?
                    }
                    opened => opened?,
                };
            }
            Component::ParentDir | Component::Prefix(_) => return Err(io::ErrorKind::InvalidInput.into()),
        }
    }
    Ok(folder)
}

/// The folder of a file, opened, and its name there.
fn open_parent(real: &Path, make: bool) -> io::Result<(OwnedFd, &OsStr)> {
    match (real.parent(), real.file_name()) {
        (Some(parent), Some(name)) => Ok((open_folder(parent, make)?, name)),
        (None, _) | (_, None) => Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a folder")),
    }
}

/// The content of the file that was approved for reading.
pub(crate) fn read_approved(approved: &crate::gate::Approved) -> io::Result<Vec<u8>> {
    read(approved.file())
}

/// The content of a regular file.
pub(super) fn read(real: &Path) -> io::Result<Vec<u8>> {
    let (folder, name) = open_parent(real, false)?;
    // Without O_NONBLOCK, opening a named pipe would wait for a writer.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = File::from(fs::openat(&folder, name, flags, Mode::empty())?);
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let too_large = || {
        io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("it has more than {LARGEST} bytes; use `shell` to read a part"),
        )
    };
    if meta.len() > LARGEST {
        return Err(too_large());
    }
    let mut content = Vec::new();
    if file.take(LARGEST + 1).read_to_end(&mut content)? as u64 > LARGEST {
        return Err(too_large());
    }
    Ok(content)
}

/// Puts `content` in the place of a regular file, or of nothing, in one step. Missing folders are made; an existing
/// file's permissions are kept.
pub(super) fn write(real: &Path, content: &[u8]) -> io::Result<()> {
    let (folder, name) = open_parent(real, true)?;
    let mode = match fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile => {
            Some(Mode::from_raw_mode(stat.st_mode) & Mode::from_raw_mode(0o777))
        }
        Ok(_) => return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")),
        Err(Errno::NOENT) => None,
        Err(error) => return Err(error.into()),
    };
    let (temporary, file) = make_temporary(folder.as_fd(), name)?;
    let written = fill(&file, content, mode)
        .and_then(|()| fs::renameat(&folder, &temporary, &folder, name).map_err(io::Error::from));
    if written.is_err() {
        // The first error counts; the file may be gone already.
        let _ = fs::unlinkat(&folder, &temporary, AtFlags::empty());
    }
    written
}

fn make_temporary(folder: BorrowedFd<'_>, name: &OsStr) -> io::Result<(OsString, File)> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    for attempt in 0..64_u32 {
        let mut temporary = OsString::from(".");
        // A name has at most 255 bytes, and this one is longer than the file's.
        if name.len() < 200 {
            temporary.push(name);
        }
        temporary.push(format!(".{}-{attempt}.new", std::process::id()));
        match fs::openat(folder, &temporary, flags, Mode::from_raw_mode(0o666)) {
            Ok(file) => return Ok((temporary, File::from(file))),
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

fn fill(mut file: &File, content: &[u8], mode: Option<Mode>) -> io::Result<()> {
    if let Some(mode) = mode {
        fs::fchmod(file, mode)?;
    }
    file.write_all(content)?;
    file.sync_all()
}

/// The names in a folder, sorted, and how many more there are.
pub(super) fn list(real: &Path) -> io::Result<(Vec<String>, usize)> {
    let folder = open_folder(real, false)?;
    let mut names = Vec::new();
    for entry in Dir::read_from(&folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let mut shown = name.to_string_lossy().into_owned();
        if is_folder(&folder, &entry) {
            shown.push('/');
        }
        names.push(shown);
    }
    names.sort();
    let more = names.len().saturating_sub(MOST_NAMES);
    names.truncate(MOST_NAMES);
    Ok((names, more))
}

fn is_folder(folder: &OwnedFd, entry: &rustix::fs::DirEntry) -> bool {
    match entry.file_type() {
        FileType::Directory => true,
        // Some file systems do not say.
        FileType::Unknown => fs::statat(folder, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory),
        FileType::RegularFile
        | FileType::Symlink
        | FileType::Fifo
        | FileType::Socket
        | FileType::CharacterDevice
        | FileType::BlockDevice => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    fn scratch() -> (tempfile::TempDir, std::path::PathBuf) {
        let scratch = tempfile::tempdir().unwrap();
        let real = scratch.path().canonicalize().unwrap();
        (scratch, real)
    }

    #[test]
    fn a_symlink_that_came_after_the_decision_is_not_followed() {
        let (_scratch, real) = scratch();
        std::fs::create_dir(real.join("inside")).unwrap();
        std::fs::create_dir(real.join("outside")).unwrap();
        std::fs::write(real.join("outside/secret"), "secret").unwrap();
        symlink(real.join("outside"), real.join("inside/folder")).unwrap();
        symlink(real.join("outside/secret"), real.join("inside/file")).unwrap();
        assert!(read(&real.join("inside/folder/secret")).is_err());
        assert!(read(&real.join("inside/file")).is_err());
        assert!(write(&real.join("inside/folder/secret"), b"x").is_err());
        assert!(write(&real.join("inside/file"), b"x").is_err());
        assert!(list(&real.join("inside/folder")).is_err());
        assert_eq!(std::fs::read(real.join("outside/secret")).unwrap(), b"secret");
    }

    #[test]
    fn a_write_keeps_the_permissions_and_leaves_nothing_beside_the_file() {
        let (_scratch, real) = scratch();
        let script = real.join("a/b/run.sh");
        write(&script, b"one").unwrap();
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o750)).unwrap();
        write(&script, b"two").unwrap();
        assert_eq!(read(&script).unwrap(), b"two");
        assert_eq!(script.metadata().unwrap().permissions().mode() & 0o777, 0o750);
        assert_eq!(list(&real.join("a/b")).unwrap(), (vec!["run.sh".to_owned()], 0));
        assert_eq!(list(&real.join("a")).unwrap(), (vec!["b/".to_owned()], 0));
    }

    #[test]
    fn what_is_not_a_regular_file_is_neither_read_nor_replaced() {
        let (_scratch, real) = scratch();
        fs::mkfifoat(fs::CWD, real.join("pipe"), Mode::from_raw_mode(0o600)).unwrap();
        assert!(read(&real.join("pipe")).is_err());
        assert!(write(&real.join("pipe"), b"x").is_err());
        assert!(read(&real).is_err());
        assert!(write(&real, b"x").is_err());
    }
}
