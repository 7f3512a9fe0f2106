//! What processes write down that answer once and end, such as an agent's hooks: a file of lines beside the trace.
//!
//! Opening the trace takes such a process longer than all the rest of its work, so it adds a line to the spool instead,
//! and whoever opens the trace next brings the lines in, before anything else is read or written. A line is on the disk as
//! surely as a row is: both are in the system's hands when the process goes on, and neither waits for the disk.
//!
//! Each line ends with the SHA-256 of the end of the line before and of its own content; the first line of the file, which
//! holds nothing else, with that of the last line that was brought in before. So lines that were changed, removed or
//! reordered while they waited are found, as in the trace itself.

use super::rows::DecidedRun;
use super::{GENESIS, Store, StoreError, hex, link, now, sqlite, wait};
use crate::read;
use rusqlite::{OptionalExtension as _, Transaction, TransactionBehavior, params};
use sha2::{Digest, Sha256};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// From how many bytes on a spool is brought in by the next process that would add to it.
const LONG: u64 = 64 * 1024;
/// A file larger than this, in bytes, was not written by this program.
const LARGEST: u64 = 256 * 1024 * 1024;
/// What the first line begins with.
const BEGINNING: &str = r#"{"cmdgate_spool":1"#;
/// What stands between the content of a line and its link.
const BEFORE_LINK: &str = r#","link":""#;
/// What stands after the link.
const AFTER_LINK: &str = "\"}";
/// How long a link is, in bytes.
const LINK: usize = GENESIS.len();
/// How long the end of a line is, in bytes, from [`BEFORE_LINK`] on.
const END: usize = BEFORE_LINK.len() + LINK + AFTER_LINK.len() + 1;
/// How long the first line is.
const HEADER: u64 = (BEGINNING.len() + END) as u64;

/// Where the spool of a trace lies.
fn beside(trace: &Path) -> PathBuf {
    let mut path = trace.as_os_str().to_owned();
    path.push("-spool");
    path.into()
}

/// Whether the trace is there, by its own name and not by a link.
fn is_itself(trace: &Path) -> bool {
    fs::symlink_metadata(trace).is_ok_and(|meta| meta.is_file())
}

fn unusable(path: &Path) -> impl Fn(io::Error) -> StoreError + '_ {
    |source| StoreError::Spool { path: path.to_path_buf(), source }
}

/// Adds a line to the spool of a trace. False when there is none, or when it has to be brought in first: then the trace
/// must be opened.
pub(super) fn add(trace: &Path, run: &DecidedRun) -> Result<bool, StoreError> {
    if !is_itself(trace) {
        return Ok(false);
    }
    let path = beside(trace);
    let failed = unusable(&path);
    let Some(file) = open_locked(&path).map_err(&failed)? else { return Ok(false) };
    let length = file.metadata().map_err(&failed)?.len();
    if !(HEADER..LONG).contains(&length) {
        return Ok(false);
    }
    let mut end = [0; END];
    file.read_exact_at(&mut end, length.saturating_sub(END as u64)).map_err(&failed)?;
    // Whoever wrote the last line may have been killed in the midst of it.
    let Some(before) = std::str::from_utf8(&end).ok().and_then(|end| Some(split(end.strip_suffix('\n')?)?.1))
    else {
        return Ok(false);
    };
    let content = serde_json::to_string(run).map_err(|error| failed(error.into()))?;
    let written = (&file).write_all(line(&content, before).as_bytes());
    if written.is_err() {
        // Half a line would have to be told from a damaged one.
        let _ = file.set_len(length);
    }
    written.map_err(failed)?;
    Ok(true)
}

/// A line, of a content in JSON without its last brace.
fn line(content: &str, before: &str) -> String {
    let content = content.strip_suffix('}').unwrap_or(content);
    let link = link_of(content, before);
    format!("{content}{BEFORE_LINK}{link}{AFTER_LINK}\n")
}

/// What the first line is when the last one that was brought in had this link.
fn header(before: &str) -> String {
    format!("{BEGINNING}{BEFORE_LINK}{before}{AFTER_LINK}\n")
}

fn link_of(content: &str, before: &str) -> String {
    hex(Sha256::digest(format!("{before}\n{content}")))
}

/// The content of a line, without its last brace, and the link.
fn split(line: &str) -> Option<(&str, &str)> {
    let rest = line.strip_suffix(AFTER_LINK)?;
    let (content, link) = rest.split_at_checked(rest.len().checked_sub(LINK)?)?;
    let hexadecimal = link.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    hexadecimal.then_some((content.strip_suffix(BEFORE_LINK)?, link))
}

/// The spool, held against all other processes; nothing when there is none.
fn open_locked(path: &Path) -> io::Result<Option<File>> {
    loop {
        // In a project that is not the user's own, a link could lead to what must not be copied or written to.
        if fs::symlink_metadata(path).is_ok_and(|meta| meta.is_symlink()) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is a symbolic link: remove it"));
        }
        let mut options = OpenOptions::new();
        options.read(true).append(true);
        let file = match read::open_with(path, &mut options) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let (mut waits, mut tries) = (wait(), 0);
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if waits(tries) => tries += 1,
                Err(TryLockError::WouldBlock) => {
                    return Err(io::Error::new(io::ErrorKind::TimedOut, "another process holds it locked"));
                }
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
        // Whoever held it may have put a new one in its place.
        if file.metadata()?.nlink() > 0 {
            return Ok(Some(file));
        }
    }
}

/// Puts a new spool, in which nothing waits, in the place of the one before, in one step. Only who holds that one, or found
/// none under the lock of the trace, does so: the file on the way is nobody else's, or was left by one who was killed.
fn renew(path: &Path, last: &str) -> io::Result<()> {
    let mut new = path.as_os_str().to_owned();
    new.push("-new");
    let new = PathBuf::from(new);
    let _ = fs::remove_file(&new);
    let begun = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&new)
        .and_then(|mut file| file.write_all(header(last).as_bytes()))
        .and_then(|()| fs::rename(&new, path));
    if begun.is_err() {
        let _ = fs::remove_file(&new);
    }
    begun
}

/// The link of the line that was brought in last; nothing where there never was a spool.
fn brought_in(transaction: &Transaction<'_>) -> rusqlite::Result<Option<String>> {
    transaction
        .prepare_cached("SELECT last FROM spool WHERE id = 1")?
        .query_row([], |row| row.get(0))
        .optional()
}

/// Notes in the trace how far the spool was brought in, and what was wrong with it.
fn note(transaction: &Transaction<'_>, last: &str, runs: usize, fault: Option<&str>) -> rusqlite::Result<()> {
    transaction
        .prepare_cached(
            "INSERT INTO spool (id, at, last, runs, faults, fault) VALUES (1, ?1, ?2, ?3, ?4 IS NOT NULL, ?4)
             ON CONFLICT (id) DO UPDATE SET at = ?1, last = ?2, runs = runs + ?3,
             faults = faults + (?4 IS NOT NULL), fault = coalesce(fault, ?4)",
        )?
        .execute(params![now(), last, i64::try_from(runs).unwrap_or(i64::MAX), fault])?;
    link(transaction, "spool", 1)
}

/// What was read of a spool.
struct Waiting {
    runs: Vec<DecidedRun>,
    last: String,
    fault: Option<String>,
}

/// Reads all lines of a spool that were not brought in before. What comes after the last end of a line was never answered
/// for: its writer was killed or had no room.
fn waiting(content: &[u8], brought_in: Option<&str>) -> Waiting {
    let content = String::from_utf8_lossy(content);
    let mut faults = Vec::new();
    let mut lines = content.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')).enumerate();
    let mut header = lines.clone();
    let begins = header.next().and_then(|(_, line)| split(line)).filter(|(content, _)| *content == BEGINNING);
    let mut before = begins.map(|(_, link)| link);
    if before.is_some() {
        lines = header;
    } else {
        faults.push("its first line is gone".to_owned());
    }
    let begins_after = before;
    let mut found = Vec::new();
    for (at, line) in lines {
        let number = at + 1;
        let Some((content, link)) = split(line) else {
            faults.push(format!("line {number} was not written by this program"));
            continue;
        };
        if before.is_some_and(|before| link != link_of(content, before)) {
            faults.push(format!("line {number} does not follow from the one before"));
        }
        before = Some(link);
        match serde_json::from_str::<DecidedRun>(&format!("{content}}}")) {
            Ok(run) => found.push((link, run)),
            Err(error) => faults.push(format!("line {number} cannot be read: {error}")),
        }
    }
    let last = before.unwrap_or(GENESIS).to_owned();
    // Where a process was killed between bringing lines in and removing them, they are still there.
    let old = match brought_in {
        Some(link) if begins_after != Some(link) => {
            let old = found.iter().position(|(known, _)| *known == link).map(|at| at + 1);
            if old.is_none() {
                faults.push("it does not go on where it was brought in last".to_owned());
            }
            old.unwrap_or(0)
        }
        Some(_) => 0,
        None => {
            faults.push("it was not begun by this trace".to_owned());
            0
        }
    };
    let runs = found.into_iter().skip(old).map(|(_, run)| run).collect();
    let more = faults.len().saturating_sub(1);
    let fault = faults.into_iter().next().map(|first| match more {
        0 => first,
        more => format!("{first}, and {more} more"),
    });
    Waiting { runs, last, fault }
}

impl Store {
    /// Brings in what waits in the spool. Opening does that; a process that has the trace open for long, and shows what
    /// others record, does it again.
    pub(crate) fn bring_in(&self) -> Result<(), StoreError> {
        let path = beside(self.path());
        let failed = unusable(&path);
        match fs::symlink_metadata(&path) {
            Ok(meta) if meta.is_file() && meta.len() == HEADER => return Ok(()),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(failed(error)),
        }
        let database = |source| sqlite(self.path(), source);
        let mut connection = self.connection();
        // The lock of the trace first: whoever waits for that must not keep hooks waiting for the spool.
        let transaction =
            connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(database)?;
        let Some(mut file) = open_locked(&path).map_err(&failed)? else { return Ok(()) };
        let content = read::content(&mut file, LARGEST).map_err(&failed)?;
        let waiting = waiting(&content, brought_in(&transaction).map_err(database)?.as_deref());
        for run in &waiting.runs {
            run.insert(&transaction).map_err(database)?;
        }
        if waiting.fault.is_some() {
            // Whatever is wrong with it, nothing of it is lost.
            let mut kept = path.as_os_str().to_owned();
            kept.push(format!("-faulty-{}", jiff::Timestamp::now().as_millisecond()));
            fs::copy(&path, &kept).map_err(&failed)?;
        }
        note(&transaction, &waiting.last, waiting.runs.len(), waiting.fault.as_deref()).map_err(database)?;
        transaction.commit().map_err(database)?;
        // Where this fails, the next one finds by their links what is in the trace already.
        let _ = renew(&path, &waiting.last);
        Ok(())
    }

    /// Begins a spool where there is none, so that the next process need not open the trace. That it cannot be begun costs
    /// that process time and nothing else.
    pub(crate) fn begin_spool(&self) -> Result<(), StoreError> {
        // Of a trace that is reached by a link, the spool would not be found by those who take the file's own name.
        if !is_itself(self.path()) {
            return Ok(());
        }
        let path = beside(self.path());
        self.write(|transaction| {
            let last = brought_in(transaction)?;
            let begun = !path.exists() && renew(&path, last.as_deref().unwrap_or(GENESIS)).is_ok();
            match last {
                _ if !begun => Ok(()),
                Some(last) => note(transaction, &last, 0, Some("it was removed")),
                None => note(transaction, GENESIS, 0, None),
            }
        })
    }

    /// What waits in the spool and cannot be brought in, if anything.
    pub(super) fn waits_in_spool(trace: &Path) -> bool {
        fs::symlink_metadata(beside(trace)).is_ok_and(|meta| meta.len() != HEADER)
    }
}
