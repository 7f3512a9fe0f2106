//! Which project policy files a person has trusted, by their exact content.

use crate::read;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// The file in the state directory.
const FILE: &str = "trusted.json";
/// A record larger than this, in bytes, was not written by this program.
const LARGEST: u64 = 256 * 1024 * 1024;
/// A content longer than this, in bytes, is not kept for later comparison.
const LONGEST_KEPT: usize = 1024 * 1024;

/// One trusted content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trusted {
    /// The file.
    pub path: PathBuf,
    /// SHA-256 of its content, in hexadecimal.
    pub sha256: String,
    /// The content, to show later what changed. It is not what is trusted: that is the hash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
}

/// What was trusted of a file before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Before<'s> {
    /// This.
    Content(&'s str),
    /// Something of which only the hash was kept.
    NotKept,
}

/// The record of trusted contents.
#[derive(Debug, Clone, Default)]
pub struct TrustStore {
    file: Option<PathBuf>,
    entries: Vec<Trusted>,
}

/// Why the record cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrustError {
    /// The record cannot be read or written.
    #[error("cannot use the record of trusted files {path}: {source}")]
    Io {
        /// The record.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The record is not what this program writes.
    #[error("the record of trusted files {path} is damaged ({what}); remove it and trust the files again")]
    Damaged {
        /// The record.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// There is no home or state directory to keep the record in.
    #[error("there is no state directory: set HOME or XDG_STATE_HOME")]
    NoDirectory,
}

impl TrustStore {
    /// Reads the record in a state directory; empty when there is none.
    ///
    /// # Errors
    ///
    /// When the record is there and cannot be read or understood.
    pub fn open(state: Option<&Path>) -> Result<Self, TrustError> {
        let Some(state) = state else { return Ok(Self::default()) };
        let path = state.join(FILE);
        let entries = match read::bytes(&path, LARGEST) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map_err(|error| TrustError::Damaged { path: path.clone(), what: error.to_string() })?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(source) => return Err(TrustError::Io { path, source }),
        };
        Ok(Self { file: Some(path), entries })
    }

    /// Whether exactly this content of this file is trusted.
    pub fn is_trusted(&self, path: &Path, content: &[u8]) -> bool {
        let sha256 = hash(content);
        self.entries.iter().any(|entry| entry.path == path && entry.sha256 == sha256)
    }

    /// Trusts exactly this content, and no earlier one of the same file.
    ///
    /// # Errors
    ///
    /// When the record cannot be written.
    pub fn trust(&mut self, path: &Path, content: &[u8]) -> Result<(), TrustError> {
        self.entries.retain(|entry| entry.path != path);
        let kept = std::str::from_utf8(content).ok().filter(|text| text.len() <= LONGEST_KEPT);
        self.entries.push(Trusted {
            path: path.to_path_buf(),
            sha256: hash(content),
            content: kept.map(ToOwned::to_owned),
        });
        self.save()
    }

    /// What was trusted of this file last, whatever it holds by now.
    pub fn before(&self, path: &Path) -> Option<Before<'_>> {
        let entry = self.entries.iter().find(|entry| entry.path == path)?;
        let content = entry.content.as_deref().filter(|text| hash(text.as_bytes()) == entry.sha256);
        Some(content.map_or(Before::NotKept, Before::Content))
    }

    /// Forgets a file; false when it was not trusted.
    ///
    /// # Errors
    ///
    /// When the record cannot be written.
    pub fn revoke(&mut self, path: &Path) -> Result<bool, TrustError> {
        let before = self.entries.len();
        self.entries.retain(|entry| entry.path != path);
        if self.entries.len() == before {
            return Ok(false);
        }
        self.save().map(|()| true)
    }

    /// The trusted contents.
    pub fn entries(&self) -> &[Trusted] {
        &self.entries
    }

    fn save(&self) -> Result<(), TrustError> {
        let path = self.file.clone().ok_or(TrustError::NoDirectory)?;
        let failed = |source: io::Error| TrustError::Io { path: path.clone(), source };
        let directory = path.parent().ok_or(TrustError::NoDirectory)?;
        fs::create_dir_all(directory).map_err(failed)?;
        let text = serde_json::to_vec_pretty(&self.entries).map_err(|error| failed(error.into()))?;
        // A whole new file takes the place of the old one, so that a full disk never leaves half a record.
        let mut new = tempfile::NamedTempFile::new_in(directory).map_err(failed)?;
        io::Write::write_all(&mut new, &text).map_err(failed)?;
        new.persist(&path).map_err(|error| failed(error.error))?;
        Ok(())
    }
}

fn hash(content: &[u8]) -> String {
    Sha256::digest(content).iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_exact_content_is_trusted() {
        // contract: X7
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join(".cmdgate.toml");
        let mut store = TrustStore::open(Some(dir.path())).unwrap();
        assert!(!store.is_trusted(&file, b"a"));
        store.trust(&file, b"a").unwrap();
        let store = TrustStore::open(Some(dir.path())).unwrap();
        assert!(store.is_trusted(&file, b"a"));
        assert!(!store.is_trusted(&file, b"a "));
        assert!(!store.is_trusted(Path::new("/other"), b"a"));
        let mut store = TrustStore::open(Some(dir.path())).unwrap();
        assert!(store.revoke(&file).unwrap());
        assert!(!TrustStore::open(Some(dir.path())).unwrap().is_trusted(&file, b"a"));
    }

    #[test]
    fn what_was_trusted_is_kept_to_be_compared() {
        // contract: X7
        let dir = tempfile::tempdir().unwrap();
        let (file, large) = (dir.path().join(".cmdgate.toml"), dir.path().join("large.toml"));
        let mut store = TrustStore::open(Some(dir.path())).unwrap();
        assert_eq!(store.before(&file), None);
        store.trust(&file, b"a = 1").unwrap();
        store.trust(&large, &vec![b'#'; LONGEST_KEPT + 1]).unwrap();
        let store = TrustStore::open(Some(dir.path())).unwrap();
        assert_eq!(store.before(&file), Some(Before::Content("a = 1")));
        assert_eq!(store.before(&large), Some(Before::NotKept));
        // A record without contents, and one whose content was changed, are good for their hashes alone.
        let record = dir.path().join(FILE);
        let text = fs::read_to_string(&record).unwrap();
        fs::write(&record, text.replace("\"a = 1\"", "\"a = 2\"")).unwrap();
        let store = TrustStore::open(Some(dir.path())).unwrap();
        assert_eq!(store.before(&file), Some(Before::NotKept));
        assert!(store.is_trusted(&file, b"a = 1") && !store.is_trusted(&file, b"a = 2"));
        fs::write(&record, format!(r#"[{{"path":{file:?},"sha256":"{}"}}]"#, hash(b"old"))).unwrap();
        let store = TrustStore::open(Some(dir.path())).unwrap();
        assert!(store.is_trusted(&file, b"old") && store.before(&file) == Some(Before::NotKept));
    }

    #[test]
    fn a_damaged_record_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(FILE), "[{\"path\":").unwrap();
        assert!(matches!(TrustStore::open(Some(dir.path())), Err(TrustError::Damaged { .. })));
    }
}
