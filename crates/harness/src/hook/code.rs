//! One-time codes, for agents that have no answer for an ask.
//!
//! The agent is refused with a code. A person who says `harness allow-once CODE` allows exactly these commands, asked by this
//! agent with or without containment, in exactly this directory, once, within a day.

use crate::approve::{Answer, AnswerFuture, Approver, Question, pending};
use crate::config::UserDirs;
use crate::gate::{Action, Decision};
use crate::read;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

/// How long a code is good for, in seconds.
const LIFETIME: i64 = 24 * 60 * 60;
/// A file larger than this, in bytes, was not written by this program.
const LARGEST: u64 = 256 * 1024 * 1024;
/// Open codes beyond this many push out the oldest.
const MOST: usize = 200;

/// An ask that waits for its code, or that was allowed and not yet used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// The code.
    pub code: String,
    /// SHA-256 of who asked (or, for a contained run, its sandbox), directory and commands.
    pub digest: String,
    /// The commands, for a person.
    pub shown: String,
    /// The directory.
    pub cwd: PathBuf,
    /// When it was asked, in seconds since 1970.
    pub asked_at: i64,
    /// Whether a person has allowed it.
    pub allowed: bool,
    /// Whether it is for a contained run, about which the agent itself asks a person.
    #[serde(default)]
    pub for_run: bool,
    /// Where it was recorded that it was asked.
    #[serde(default)]
    pub recorded: Recorded,
}

/// The place of a question in a trace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recorded {
    /// The trace, as an absolute path; none is the user's own.
    pub trace: Option<PathBuf>,
    /// The numbers of the steps that asked; empty when none was recorded.
    pub steps: Vec<i64>,
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
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = read::open_with(&path, &mut options).map_err(failed)?;
        keep_private(&file).map_err(failed)?;
        file.lock().map_err(failed)?;
        let text = read::content(&mut file, LARGEST).map_err(failed)?;
        let mut entries: Vec<Entry> = serde_json::from_slice(&text).unwrap_or_default();
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
    pub fn ask(
        &mut self,
        asker: &str,
        cwd: &Path,
        commands: &[String],
        recorded: Recorded,
    ) -> Result<String, CodeError> {
        let digest = digest(asker, cwd, commands);
        let known = self.entries.iter_mut().find(|entry| entry.digest == digest && !entry.allowed);
        if let Some(known) = known {
            // A yes answers the newest of the same questions.
            known.recorded = recorded;
            let code = known.code.clone();
            return self.save().map(|()| code);
        }
        let code = self.fresh_code()?;
        self.entries.push(Entry {
            code: code.clone(),
            digest,
            shown: commands.join("\n"),
            cwd: cwd.to_path_buf(),
            asked_at: now(),
            allowed: false,
            for_run: false,
            recorded,
        });
        self.keep_most();
        self.save()?;
        Ok(code)
    }

    fn keep_most(&mut self) {
        let surplus = self.entries.len().saturating_sub(MOST);
        self.entries.drain(..surplus);
    }

    /// Permits one contained run of this action in this directory, under a permit of [`permit`]. It is handed to the agent
    /// together with its question, and whoever shows the agent's hook the same text again is asked again.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn permit_run(
        &mut self,
        permit: &str,
        sandbox: &str,
        cwd: &Path,
        action: &Action,
    ) -> Result<(), CodeError> {
        self.entries.push(Entry {
            code: permit.to_owned(),
            digest: digest(sandbox, cwd, &[permit.to_owned(), fingerprint(action)]),
            shown: action.text().into_owned(),
            cwd: cwd.to_path_buf(),
            asked_at: now(),
            allowed: true,
            for_run: true,
            recorded: Recorded::default(),
        });
        self.keep_most();
        self.save()
    }

    /// Uses up the permit for a contained run of this action in this directory; false when there is none.
    ///
    /// # Errors
    ///
    /// When that cannot be written, in which case nothing is permitted.
    pub fn take_run(
        &mut self,
        permit: &str,
        sandbox: &str,
        cwd: &Path,
        action: &Action,
    ) -> Result<bool, CodeError> {
        let digest = digest(sandbox, cwd, &[permit.to_owned(), fingerprint(action)]);
        let Some(at) = self.entries.iter().position(|entry| entry.for_run && entry.digest == digest) else {
            return Ok(false);
        };
        self.entries.remove(at);
        self.save().map(|()| true)
    }

    /// Uses up the permission for these commands in this directory, and gives it; nothing when there is none.
    ///
    /// # Errors
    ///
    /// When that cannot be written, in which case nothing is permitted.
    pub fn take(&mut self, asker: &str, cwd: &Path, commands: &[String]) -> Result<Option<Entry>, CodeError> {
        let digest = digest(asker, cwd, commands);
        let Some(at) =
            self.entries.iter().position(|entry| entry.digest == digest && entry.allowed && !entry.for_run)
        else {
            return Ok(None);
        };
        let entry = self.entries.remove(at);
        self.save().map(|()| Some(entry))
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

    /// A code that no open request has.
    fn fresh_code(&self) -> Result<String, CodeError> {
        loop {
            let code = random_code::<6>()?;
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

/// Takes the file from everybody but its owner: whoever reads a code or a permit can use it.
#[cfg(unix)]
fn keep_private(file: &File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    if file.metadata()?.permissions().mode() & 0o777 == 0o600 {
        return Ok(());
    }
    file.set_permissions(fs::Permissions::from_mode(0o600))
}

#[cfg(not(unix))]
fn keep_private(_: &File) -> io::Result<()> {
    Ok(())
}

/// An action as a text that no other action has.
fn fingerprint(action: &Action) -> String {
    match action {
        Action::Shell(command) => format!("shell\0{command}"),
        Action::Exec(argv) => format!("exec\0{}", argv.join("\0")),
        Action::Read(path) => format!("read\0{}", path.display()),
        Action::Write(path) => format!("write\0{}", path.display()),
    }
}

/// The approver of a contained run that the agent has asked a person about: a permit answers for exactly one run.
#[derive(Debug, Clone)]
pub struct Answered {
    /// The permit.
    pub permit: String,
    /// The mode of the sandbox in which it would run.
    pub sandbox: &'static str,
    /// The project.
    pub root: PathBuf,
}

/// A text that is another one as soon as a file that the command names, or that drives it, has another content.
pub fn bound_to(text: &str, decision: &Decision, root: &Path) -> String {
    format!("{text} {}", pending::fingerprint(&pending::files_of(decision, root)))
}

impl Approver for Answered {
    fn answer<'a>(&'a self, question: Question<'a>) -> AnswerFuture<'a> {
        let taken = Codes::open(&UserDirs::from_environment()).and_then(|mut codes| {
            let whose = bound_to(self.sandbox, question.decision, &self.root);
            codes.take_run(&self.permit, &whose, &question.decision.workdir, &question.request.action)
        });
        let answer = match taken {
            Ok(true) => Answer::yes(),
            Ok(false) => Answer::Deny {
                reason: format!(
                    "{}, and the yes to it was used up, is older than a day, or was to other contents of its files: let the agent ask again",
                    question.decision.reason
                ),
            },
            Err(error) => Answer::Deny { reason: error.to_string() },
        };
        Box::pin(std::future::ready(answer))
    }
}

/// A new permit for [`Codes::permit_run`].
///
/// # Errors
///
/// When the system gives no random bytes.
pub fn permit() -> Result<String, CodeError> {
    random_code::<16>()
}

/// Letters from the system's own randomness that are not taken for one another.
fn random_code<const LENGTH: usize>() -> Result<String, CodeError> {
    const ALPHABET: &[u8; 32] = b"23456789abcdefghijkmnpqrstuvwxyz";
    let failed = |source: io::Error| CodeError::Io { path: PathBuf::from("/dev/urandom"), source };
    let mut bytes = [0; LENGTH];
    File::open("/dev/urandom").and_then(|mut random| random.read_exact(&mut bytes)).map_err(failed)?;
    Ok(bytes
        .iter()
        .filter_map(|byte| ALPHABET.get(usize::from(byte % 32)))
        .map(|letter| char::from(*letter))
        .collect())
}

fn digest(whose: &str, cwd: &Path, commands: &[String]) -> String {
    let mut hash = Sha256::new();
    hash.update(whose.as_bytes());
    hash.update([0]);
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
        let code =
            Codes::open(&dirs).unwrap().ask("a", Path::new("/p"), &command, Recorded::default()).unwrap();
        assert_eq!(
            Codes::open(&dirs).unwrap().ask("a", Path::new("/p"), &command, Recorded::default()).unwrap(),
            code
        );
        assert!(Codes::open(&dirs).unwrap().take("a", Path::new("/p"), &command).unwrap().is_none());
        Codes::open(&dirs).unwrap().allow(&code).unwrap();
        assert!(Codes::open(&dirs).unwrap().allow(&code).is_err());
        assert!(Codes::open(&dirs).unwrap().take("a", Path::new("/q"), &command).unwrap().is_none());
        assert!(Codes::open(&dirs).unwrap().take("b", Path::new("/p"), &command).unwrap().is_none());
        assert!(
            Codes::open(&dirs)
                .unwrap()
                .take("a", Path::new("/p"), &["rm -rf /".to_owned()])
                .unwrap()
                .is_none()
        );
        assert!(Codes::open(&dirs).unwrap().take("a", Path::new("/p"), &command).unwrap().is_some());
        assert!(Codes::open(&dirs).unwrap().take("a", Path::new("/p"), &command).unwrap().is_none());
    }

    #[test]
    fn a_permit_is_for_one_run_and_for_nothing_else() {
        let scratch = tempfile::tempdir().unwrap();
        let dirs = dirs(scratch.path());
        let (here, action) = (Path::new("/p"), Action::Shell("git push".to_owned()));
        let permit = permit().unwrap();
        Codes::open(&dirs).unwrap().permit_run(&permit, "read_only", here, &action).unwrap();
        let mut codes = Codes::open(&dirs).unwrap();
        assert!(codes.take("a", here, &["git push".to_owned()]).unwrap().is_none());
        assert!(codes.take("a", here, &[permit.clone(), "shell\0git push".to_owned()]).unwrap().is_none());
        assert!(codes.find(&permit).is_none() && codes.allow(&permit).is_err());
        let exec = |words: &[&str]| Action::Exec(words.iter().map(ToString::to_string).collect());
        for other in [exec(&["git", "push"]), exec(&["git push"]), Action::Shell("git push -f".to_owned())] {
            assert!(!codes.take_run(&permit, "read_only", here, &other).unwrap());
        }
        assert!(!codes.take_run(&permit, "read_only", Path::new("/q"), &action).unwrap());
        assert!(!codes.take_run(&permit, "danger_full_access", here, &action).unwrap());
        assert!(!codes.take_run("other", "read_only", here, &action).unwrap());
        assert!(codes.take_run(&permit, "read_only", here, &action).unwrap());
        assert!(!codes.take_run(&permit, "read_only", here, &action).unwrap());
    }

    #[test]
    fn ten_takers_at_once_share_one_permission() {
        let scratch = tempfile::tempdir().unwrap();
        let dirs = dirs(scratch.path());
        let command = ["make install".to_owned()];
        let code =
            Codes::open(&dirs).unwrap().ask("a", Path::new("/p"), &command, Recorded::default()).unwrap();
        Codes::open(&dirs).unwrap().allow(&code).unwrap();
        let taken: usize = std::thread::scope(|scope| {
            let takers: Vec<_> = (0..10)
                .map(|_| {
                    scope.spawn(|| {
                        Codes::open(&dirs).unwrap().take("a", Path::new("/p"), &command).unwrap().is_some()
                    })
                })
                .collect();
            takers.into_iter().map(|taker| usize::from(taker.join().unwrap())).sum()
        });
        assert_eq!(taken, 1);
    }

    #[cfg(unix)]
    #[test]
    fn only_the_owner_reads_codes_and_permits() {
        use std::os::unix::fs::PermissionsExt;
        let scratch = tempfile::tempdir().unwrap();
        let file = scratch.path().join("allow-once.json");
        let mode = || fs::metadata(&file).unwrap().permissions().mode() & 0o777;
        Codes::open(&dirs(scratch.path())).unwrap();
        assert_eq!(mode(), 0o600);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        Codes::open(&dirs(scratch.path())).unwrap();
        assert_eq!(mode(), 0o600);
    }

    #[test]
    fn a_damaged_file_allows_nothing() {
        let scratch = tempfile::tempdir().unwrap();
        fs::write(scratch.path().join("allow-once.json"), "[{\"code\":\"x\"").unwrap();
        assert!(
            Codes::open(&dirs(scratch.path())).unwrap().take("a", Path::new("/p"), &[]).unwrap().is_none()
        );
    }
}
