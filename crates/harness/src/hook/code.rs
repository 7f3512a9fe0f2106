//! One-time codes, for agents that have no answer for an ask.
//!
//! The agent is refused with a code. A person who says `harness allow-once CODE` allows exactly these commands, in exactly
//! this directory, once, within a day.

use crate::config::UserDirs;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

/// How long a code is good for, in seconds.
const LIFETIME: i64 = 24 * 60 * 60;
/// Open codes beyond this many push out the oldest.
const MOST: usize = 200;

/// An ask that waits for its code, or that was allowed and not yet used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// The code.
    pub code: String,
    /// SHA-256 of directory and commands.
    pub digest: String,
    /// The commands, for a person.
    pub shown: String,
    /// The directory.
    pub cwd: PathBuf,
    /// When it was asked, in seconds since 1970.
    pub asked_at: i64,
    /// Whether a person has allowed it.
    pub allowed: bool,
}

/// Why codes cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CodeError {
    /// The file of codes cannot be used.
    #[error("cannot use the one-time codes in {path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// There is no directory for it.
    #[error("there is no state directory for one-time codes: set HOME or XDG_STATE_HOME")]
    NoDirectory,
    /// No such code is open.
    #[error("there is no open request with the code {0:?}: it was used, is older than a day, or never was")]
    Unknown(String),
}

/// The codes in the user's state directory. Holding it locks the file against other processes.
#[derive(Debug)]
pub struct Codes {
    path: PathBuf,
    file: File,
    entries: Vec<Entry>,
}

impl Codes {
    /// Opens and locks the codes; drops those that are too old.
    ///
    /// # Errors
    ///
    /// When the file cannot be read or locked. One that is damaged is begun anew: nothing was allowed by it.
    pub fn open(dirs: &UserDirs) -> Result<Self, CodeError> {
        let directory = dirs.state.as_ref().ok_or(CodeError::NoDirectory)?;
        let path = directory.join("allow-once.json");
        let failed = |source: io::Error| CodeError::Io { path: path.clone(), source };
        fs::create_dir_all(directory).map_err(failed)?;
        let mut file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(failed)?;
        file.lock().map_err(failed)?;
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(failed)?;
        let mut entries: Vec<Entry> = serde_json::from_str(&text).unwrap_or_default();
        let now = now();
        // A clock that was set back must not keep a code alive.
        entries.retain(|entry| (0..=LIFETIME).contains(&(now - entry.asked_at)));
        Ok(Self { path, file, entries })
    }

    /// The code of these commands in this directory; the same one while it is open.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn ask(&mut self, cwd: &Path, commands: &[String]) -> Result<String, CodeError> {
        let digest = digest(cwd, commands);
        if let Some(known) = self.entries.iter().find(|entry| entry.digest == digest && !entry.allowed) {
            return Ok(known.code.clone());
        }
        let code = self.fresh_code()?;
        self.entries.push(Entry {
            code: code.clone(),
            digest,
            shown: commands.join("\n"),
            cwd: cwd.to_path_buf(),
            asked_at: now(),
            allowed: false,
        });
        let surplus = self.entries.len().saturating_sub(MOST);
        self.entries.drain(..surplus);
        self.save()?;
        Ok(code)
    }

    /// Uses up the permission for these commands in this directory; false when there is none.
    ///
    /// # Errors
    ///
    /// When that cannot be written, in which case nothing is permitted.
    pub fn take(&mut self, cwd: &Path, commands: &[String]) -> Result<bool, CodeError> {
        let digest = digest(cwd, commands);
        let Some(at) = self.entries.iter().position(|entry| entry.digest == digest && entry.allowed) else {
            return Ok(false);
        };
        self.entries.remove(at);
        self.save().map(|()| true)
    }

    /// The open request with this code.
    pub fn find(&self, code: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.code.eq_ignore_ascii_case(code) && !entry.allowed)
    }

    /// Allows the request with this code, once.
    ///
    /// # Errors
    ///
    /// When there is none, or it cannot be written.
    pub fn allow(&mut self, code: &str) -> Result<Entry, CodeError> {
        let Some(entry) =
            self.entries.iter_mut().find(|entry| entry.code.eq_ignore_ascii_case(code) && !entry.allowed)
        else {
            return Err(CodeError::Unknown(code.to_owned()));
        };
        entry.allowed = true;
        let entry = entry.clone();
        self.save().map(|()| entry)
    }

    /// A code that no open request has, from the system's own randomness.
    fn fresh_code(&self) -> Result<String, CodeError> {
        // Letters and digits that are not taken for one another.
        const ALPHABET: &[u8; 32] = b"23456789abcdefghijkmnpqrstuvwxyz";
        let failed = |source: io::Error| CodeError::Io { path: PathBuf::from("/dev/urandom"), source };
        let mut random = File::open("/dev/urandom").map_err(failed)?;
        loop {
            let mut bytes = [0; 6];
            random.read_exact(&mut bytes).map_err(failed)?;
            let code: String = bytes
                .iter()
                .filter_map(|byte| ALPHABET.get(usize::from(byte % 32)))
                .map(|letter| char::from(*letter))
                .collect();
            if !self.entries.iter().any(|entry| entry.code == code) {
                return Ok(code);
            }
        }
    }

    fn save(&mut self) -> Result<(), CodeError> {
        let path = &self.path;
        let failed = |source: io::Error| CodeError::Io { path: path.clone(), source };
        let text = serde_json::to_vec(&self.entries).map_err(|error| failed(error.into()))?;
        // In place, because the lock is on this file. Half a file is no valid list, and so allows nothing.
        self.file.set_len(0).map_err(failed)?;
        self.file.rewind().map_err(failed)?;
        self.file.write_all(&text).and_then(|()| self.file.sync_data()).map_err(failed)
    }
}

fn digest(cwd: &Path, commands: &[String]) -> String {
    let mut hash = Sha256::new();
    hash.update(cwd.as_os_str().as_encoded_bytes());
    for command in commands {
        hash.update([0]);
        hash.update(command.as_bytes());
    }
    hash.finalize().iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn now() -> i64 {
    jiff::Timestamp::now().as_second()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dirs(state: &Path) -> UserDirs {
        UserDirs { config: None, state: Some(state.to_path_buf()) }
    }

    #[test]
    fn a_code_allows_exactly_one_run_of_exactly_that() {
        let scratch = tempfile::tempdir().unwrap();
        let dirs = dirs(scratch.path());
        let command = ["rm -rf build".to_owned()];
        let code = Codes::open(&dirs).unwrap().ask(Path::new("/p"), &command).unwrap();
        assert_eq!(Codes::open(&dirs).unwrap().ask(Path::new("/p"), &command).unwrap(), code);
        assert!(!Codes::open(&dirs).unwrap().take(Path::new("/p"), &command).unwrap());
        Codes::open(&dirs).unwrap().allow(&code).unwrap();
        assert!(Codes::open(&dirs).unwrap().allow(&code).is_err());
        assert!(!Codes::open(&dirs).unwrap().take(Path::new("/q"), &command).unwrap());
        assert!(!Codes::open(&dirs).unwrap().take(Path::new("/p"), &["rm -rf /".to_owned()]).unwrap());
        assert!(Codes::open(&dirs).unwrap().take(Path::new("/p"), &command).unwrap());
        assert!(!Codes::open(&dirs).unwrap().take(Path::new("/p"), &command).unwrap());
    }

    #[test]
    fn ten_takers_at_once_share_one_permission() {
        let scratch = tempfile::tempdir().unwrap();
        let dirs = dirs(scratch.path());
        let command = ["make install".to_owned()];
        let code = Codes::open(&dirs).unwrap().ask(Path::new("/p"), &command).unwrap();
        Codes::open(&dirs).unwrap().allow(&code).unwrap();
        let taken: usize = std::thread::scope(|scope| {
            let takers: Vec<_> = (0..10)
                .map(|_| scope.spawn(|| Codes::open(&dirs).unwrap().take(Path::new("/p"), &command).unwrap()))
                .collect();
            takers.into_iter().map(|taker| usize::from(taker.join().unwrap())).sum()
        });
        assert_eq!(taken, 1);
    }

    #[test]
    fn a_damaged_file_allows_nothing() {
        let scratch = tempfile::tempdir().unwrap();
        fs::write(scratch.path().join("allow-once.json"), "[{\"code\":\"x\"").unwrap();
        assert!(!Codes::open(&dirs(scratch.path())).unwrap().take(Path::new("/p"), &[]).unwrap());
    }
}
