//! The standard input of a command: the null device, or this process's own.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{FileType, OFlags, fcntl_getfl, fstat};

/// Standard input for a command.
///
/// This process's own is handed on only where nothing but reading comes of it: a pipe, a socket, a terminal, or a file that
/// was opened for reading. A directory would lead out of the sandbox, and a device or a file that can be written past it.
pub(crate) fn open(own: bool) -> io::Result<OwnedFd> {
    let stdin = io::stdin();
    if own && is_fit(stdin.as_fd()).unwrap_or(false) {
        return stdin.as_fd().try_clone_to_owned();
    }
    Ok(File::open("/dev/null")?.into())
}

fn is_fit(input: impl AsFd) -> io::Result<bool> {
    let flags = fcntl_getfl(&input)?;
    // Linux alone has descriptors that name a file and no more (open(2), `O_PATH`).
    #[cfg(target_os = "linux")]
    if flags.contains(OFlags::PATH) {
        return Ok(false);
    }
    Ok(match FileType::from_raw_mode(fstat(&input)?.st_mode) {
        FileType::Fifo | FileType::Socket => true,
        FileType::RegularFile => flags & OFlags::ACCMODE == OFlags::RDONLY,
        FileType::CharacterDevice => rustix::termios::isatty(&input),
        FileType::Directory | FileType::Symlink | FileType::BlockDevice | FileType::Unknown => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_writable_files_and_devices_are_not_handed_on() {
        let scratch = tempfile::tempdir().unwrap();
        let file = scratch.path().join("f");
        std::fs::write(&file, "x").unwrap();
        assert!(is_fit(File::open(&file).unwrap()).unwrap());
        assert!(!is_fit(File::options().read(true).write(true).open(&file).unwrap()).unwrap());
        assert!(!is_fit(File::options().append(true).open(&file).unwrap()).unwrap());
        assert!(!is_fit(File::open(scratch.path()).unwrap()).unwrap());
        assert!(!is_fit(File::open("/dev/zero").unwrap()).unwrap());
        let (read, _write) = io::pipe().unwrap();
        assert!(is_fit(read).unwrap());
        let (one, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        assert!(is_fit(one).unwrap());
        #[cfg(target_os = "linux")]
        {
            let path = rustix::fs::open(&file, OFlags::PATH, rustix::fs::Mode::empty()).unwrap();
            assert!(!is_fit(path).unwrap());
        }
    }
}
