//! Reads the files that a person names, or that stand in a known place: whole, with a bound, and never one that could
//! keep the reader waiting or has no end.

use std::fs::{File, FileType, Metadata, OpenOptions};
use std::io::{self, Read as _};
use std::path::Path;

/// Opens a regular file to read it. A FIFO, a directory, a device or a socket is an error at once, in which nothing was
/// read from it.
///
/// # Errors
///
/// When it is anything else than a regular file, or cannot be opened.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    open_with(path, OpenOptions::new().read(true))
}

/// The same with options of one's own.
///
/// # Errors
///
/// As [`open`].
pub(crate) fn open_with(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    // Asked before, because opening a device can do something, and after, because it may have become another.
    match std::fs::metadata(path) {
        Ok(meta) => must_be_regular(&meta)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        use std::os::unix::fs::OpenOptionsExt as _;
        // Of a FIFO, opening would wait for a writer.
        let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
        options.custom_flags(i32::try_from(flags.bits()).unwrap_or(0));
    }
    let file = options.open(path)?;
    must_be_regular(&file.metadata()?)?;
    Ok(file)
}

/// Reads a regular file of at most so many bytes.
///
/// # Errors
///
/// As [`open`]; when it is larger ([`io::ErrorKind::FileTooLarge`]), before it is read where its size says so.
pub(crate) fn bytes(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    content(&mut open(path)?, most)
}

/// The same of a file that is open.
///
/// # Errors
///
/// As [`bytes`].
pub(crate) fn content(file: &mut File, most: u64) -> io::Result<Vec<u8>> {
    let too_large = || {
        io::Error::new(io::ErrorKind::FileTooLarge, format!("it is too large: at most {most} bytes are read"))
    };
    let size = file.metadata()?.len();
    if size > most {
        return Err(too_large());
    }
    let mut content = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
    // Some files do not know their size.
    file.take(most.saturating_add(1)).read_to_end(&mut content)?;
    if u64::try_from(content.len()).is_ok_and(|size| size > most) {
        return Err(too_large());
    }
    Ok(content)
}

/// Reads a regular file of UTF-8 text of at most so many bytes.
///
/// # Errors
///
/// As [`bytes`]; and when it is no text ([`io::ErrorKind::InvalidData`]), with the line.
pub(crate) fn text(path: &Path, most: u64) -> io::Result<String> {
    String::from_utf8(bytes(path, most)?).map_err(|error| {
        let line = line_of(error.as_bytes(), error.utf8_error().valid_up_to());
        io::Error::new(io::ErrorKind::InvalidData, format!("it is not UTF-8 in line {line}"))
    })
}

/// The line in which a byte stands, counted from 1.
pub(crate) fn line_of(text: &[u8], at: usize) -> usize {
    text.iter().take(at).filter(|byte| **byte == b'\n').count() + 1
}

/// Nothing where there is a regular file, or nothing at all.
///
/// # Errors
///
/// What else there is.
pub(crate) fn regular_or_absent(path: &Path) -> io::Result<()> {
    match std::fs::metadata(path) {
        Ok(meta) => must_be_regular(&meta),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

fn must_be_regular(meta: &Metadata) -> io::Result<()> {
    let kind = meta.file_type();
    if kind.is_file() {
        return Ok(());
    }
    let what = format!("it is {}, not a regular file", named(kind));
    Err(io::Error::new(io::ErrorKind::InvalidInput, what))
}

fn named(kind: FileType) -> &'static str {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt as _;
        if kind.is_fifo() {
            return "a FIFO";
        }
        if kind.is_char_device() || kind.is_block_device() {
            return "a device";
        }
        if kind.is_socket() {
            return "a socket";
        }
    }
    if kind.is_dir() { "a directory" } else { "something else" }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn only_regular_files_of_bounded_size_are_read_and_the_others_at_once_refused() {
        let scratch = tempfile::tempdir().unwrap();
        let at = |name: &str| scratch.path().join(name);
        std::fs::write(at("file"), "text").unwrap();
        std::fs::write(at("binary"), b"a\nb\n\xff").unwrap();
        assert!(std::process::Command::new("mkfifo").arg(at("fifo")).status().unwrap().success());
        std::os::unix::fs::symlink(at("fifo"), at("link")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        File::create(at("sparse")).unwrap().set_len(10 << 30).unwrap();
        assert_eq!(text(&at("file"), 4).unwrap(), "text");
        let begun = Instant::now();
        for (path, said) in [
            (at("file"), "at most 3 bytes"),
            (at("binary"), "not UTF-8 in line 3"),
            (at("fifo"), "a FIFO"),
            (at("link"), "a FIFO"),
            (at("socket"), "a socket"),
            (at("sparse"), "at most 3 bytes"),
            ("/dev/zero".into(), "a device"),
            (at("."), "a directory"),
            (at("none"), "No such file"),
        ] {
            let most = if path == at("binary") { 100 } else { 3 };
            let error = text(&path, most).unwrap_err().to_string();
            assert!(error.contains(said), "{}: {error}", path.display());
        }
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
        assert!(regular_or_absent(&at("none")).is_ok() && regular_or_absent(&at("file")).is_ok());
        assert!(regular_or_absent(&at("fifo")).is_err());
    }
}
