//! Questions that wait for an answer: stored with exactly what the person is shown, answered by another process.
//!
//! An answer lifts an ask once. When the command is resumed it is decided again, so that a deny that came meanwhile
//! holds, and what changed since the question is named: the files that the command names, its directory, the policy.

use crate::approve::terminal;
use crate::gate::{Action, Decision, Request};
use crate::session::{RecordId, Session};
use crate::store::{RunRecorder, Store, StoreError};
use crate::{diagnose, wire};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Files that decide what a program does although no argument names them.
const DRIVERS: &[(&str, &[&str])] = &[
    ("npm", &["package.json", ".npmrc"]),
    ("npx", &["package.json", ".npmrc"]),
    ("yarn", &["package.json", ".yarnrc.yml"]),
    ("pnpm", &["package.json", ".npmrc"]),
    ("make", &["Makefile", "makefile", "GNUmakefile"]),
    ("cargo", &["Cargo.toml", "build.rs", ".cargo/config.toml"]),
    ("go", &["go.mod"]),
    ("just", &["justfile"]),
    ("git", &[".git/config"]),
    ("pytest", &["pyproject.toml", "conftest.py", "setup.cfg"]),
];
/// Only so much of a file is hashed, in bytes; the size counts as well.
const HASHED_BYTES: u64 = 16 * 1024 * 1024;
/// At most so many files are looked at.
const MOST_FILES: usize = 200;

/// A stored question.
#[derive(Debug, Clone, PartialEq)]
pub struct Pending {
    /// Its number.
    pub id: i64,
    /// The run it belongs to.
    pub run: i64,
    /// The step that asks.
    pub step: i64,
    /// When it was asked.
    pub at: String,
    /// The project root.
    pub root: PathBuf,
    /// The real working directory.
    pub workdir: PathBuf,
    /// What was asked for.
    pub request: Request,
    /// Whether the stored request is the whole one: secrets are not stored, so one with a secret cannot be resumed.
    pub resumable: bool,
    /// What the person is shown: the decision, and the explanation as text.
    pub shown: Value,
    /// What the command line set.
    pub options: Value,
    /// Hash of all layers and settings.
    pub policy_hash: String,
    /// The files that the command names, with the hashes of their contents.
    pub files: Vec<FileState>,
    /// `pending`, `approved`, `denied` or `resumed`.
    pub state: String,
    /// When it was answered.
    pub answered_at: Option<String>,
    /// A message of the person who answered.
    pub answer: Option<String>,
}

/// A file as it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileState {
    /// Its real path.
    pub path: PathBuf,
    /// SHA-256 of size and content; none when there was no such file.
    pub sha256: Option<String>,
}

/// Why an approval cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PendingError {
    /// There is none.
    #[error(
        "there is no approval {0}: it was never asked for, or its run was pruned; `harness approvals list` shows those there are"
    )]
    Unknown(i64),
    /// Nobody has answered it.
    #[error("approval {0} is pending: approve it first with `harness approvals approve {0}`")]
    Unanswered(i64),
    /// Somebody else was first, or it is too early.
    #[error("approval {id} is {state}: {why}")]
    State {
        /// Its number.
        id: i64,
        /// Its state.
        state: String,
        /// What that means.
        why: &'static str,
    },
    /// The row is not what was written.
    #[error("approval {0} was changed after it was stored, and is not used; ask again")]
    Changed(i64),
    /// The command holds a secret.
    #[error(
        "approval {0} is for a command that holds a secret, which is not stored: run it again at a terminal"
    )]
    Secret(i64),
    /// The trace cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Pending {
    /// What differs now from when the question was asked; empty when nothing does.
    pub fn changes(&self, session: &Session) -> Vec<String> {
        let mut changes = Vec::new();
        let workdir = std::fs::canonicalize(&self.workdir);
        if workdir.ok().as_deref() != Some(self.workdir.as_path()) {
            changes.push(format!("the working directory {} is not the same", self.workdir.display()));
        }
        if session.gate().root() != self.root {
            changes.push(format!("the project root {} is not the same", self.root.display()));
        }
        let bounds = terminal::bounds(session.gate().settings());
        if bounds != self.sandbox() {
            changes.push(format!("it would run in another sandbox ({bounds}) than {}", self.sandbox()));
        }
        for file in &self.files {
            let now = hash_of(&file.path);
            if now != file.sha256 {
                let what = match (&file.sha256, &now) {
                    (_, None) => "is gone",
                    (None, Some(_)) => "is new",
                    (Some(_), Some(_)) => "has another content",
                };
                changes.push(format!("{} {what}", file.path.display()));
            }
        }
        changes
    }

    /// In what sandbox it would have run when it was asked: the mode, and the network.
    pub fn sandbox(&self) -> &str {
        self.shown.get("sandbox").and_then(Value::as_str).unwrap_or("not noted when it was asked")
    }

    /// Whether the policy is the one under which it was asked.
    pub fn same_policy(&self, session: &Session) -> bool {
        policy_hash(session) == self.policy_hash
    }
}

impl RunRecorder<'_> {
    /// Stores a question that nobody answered, and gives its number.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn defer(
        &self,
        record: RecordId,
        session: &Session,
        request: &Request,
        decision: &Decision,
        options: &Value,
    ) -> Result<i64, StoreError> {
        let workdir = request.workdir.as_ref().map(|path| path.to_string_lossy());
        let action = match &request.action {
            Action::Shell(command) => json!({ "command": command, "workdir": workdir }),
            Action::Exec(argv) => json!({ "argv": argv, "workdir": workdir }),
            Action::Read(path) => json!({ "read": path.to_string_lossy(), "workdir": workdir }),
            Action::Write(path) => json!({ "write": path.to_string_lossy(), "workdir": workdir }),
        };
        let shown = json!({
            "decision": wire::Decided::new(request, decision),
            "text": diagnose::plain_decision(request, decision),
            "sandbox": terminal::bounds(session.gate().settings()),
        });
        self.store_pending(&StoredQuestion {
            step: record.0,
            root: session.gate().root(),
            workdir: &decision.workdir,
            action,
            shown,
            options,
            policy_hash: &policy_hash(session),
            files: json!(files_of(decision, session.gate().root())),
        })
    }
}

/// What is written of a question.
pub(crate) struct StoredQuestion<'a> {
    pub(crate) step: i64,
    pub(crate) root: &'a Path,
    pub(crate) workdir: &'a Path,
    pub(crate) action: Value,
    pub(crate) shown: Value,
    pub(crate) options: &'a Value,
    pub(crate) policy_hash: &'a str,
    pub(crate) files: Value,
}

impl Store {
    /// Answers a question: the first answer counts, whoever else answers at the same time.
    ///
    /// # Errors
    ///
    /// When there is none of that number, or when it was answered before.
    pub fn answer(&self, id: i64, approve: bool, message: &str) -> Result<Pending, PendingError> {
        let state = if approve { "approved" } else { "denied" };
        let pending = self.pending(id)?.ok_or(PendingError::Unknown(id))?;
        if approve && !pending.resumable {
            return Err(PendingError::Secret(id));
        }
        if !self.move_pending(&pending, "pending", state, Some(message))? {
            return Err(self.wrong_state(id, "it was answered before"));
        }
        self.pending(id)?.ok_or(PendingError::Unknown(id))
    }

    /// Takes an approved question for running it: only one process can, and only once.
    ///
    /// # Errors
    ///
    /// When there is none of that number, when it is not approved, or when it was taken before.
    pub fn take_approved(&self, id: i64) -> Result<(), PendingError> {
        let pending = self.pending(id)?.ok_or(PendingError::Unknown(id))?;
        if pending.state == "pending" {
            return Err(PendingError::Unanswered(id));
        }
        if self.move_pending(&pending, "approved", "resumed", None)? {
            return Ok(());
        }
        Err(self.wrong_state(id, "an approval is used once, after somebody has approved it"))
    }

    fn wrong_state(&self, id: i64, why: &'static str) -> PendingError {
        match self.pending(id) {
            Ok(Some(pending)) => PendingError::State { id, state: pending.state, why },
            Ok(None) => PendingError::Unknown(id),
            Err(error) => error,
        }
    }
}

/// The request in its stored form.
pub(crate) fn request_of(action: &Value) -> Option<Request> {
    let text = |name: &str| action.get(name).and_then(Value::as_str);
    let kind = if let Some(command) = text("command") {
        Action::Shell(command.to_owned())
    } else if let Some(words) = action.get("argv").and_then(Value::as_array) {
        Action::Exec(words.iter().map(|word| word.as_str().map(ToOwned::to_owned)).collect::<Option<_>>()?)
    } else if let Some(path) = text("read") {
        Action::Read(path.into())
    } else {
        Action::Write(text("write")?.into())
    };
    Some(Request { action: kind, workdir: text("workdir").map(PathBuf::from) })
}

/// Hash of all layers and settings of a session.
pub fn policy_hash(session: &Session) -> String {
    let gate = session.gate();
    let layers = gate.policy().to_toml().unwrap_or_else(|errors| errors.to_string());
    let settings = serde_json::to_string(gate.settings()).unwrap_or_default();
    hex(&Sha256::digest(format!("{layers}\n{settings}")))
}

/// The files that a command names, and those that drive its programs, each under the name by which it is reached: one that
/// is not there yet may be made before the answer, and a symlink may come to lead elsewhere.
fn files_of(decision: &Decision, root: &Path) -> Vec<FileState> {
    let commands = || decision.commands.argvs.iter().chain(&decision.commands.possible);
    let program_of = |argv: &[String]| {
        argv.first().and_then(|program| program.rsplit('/').next()).unwrap_or_default().to_owned()
    };
    let mut bases = vec![decision.workdir.clone()];
    for argv in commands().filter(|argv| program_of(argv) == "cd") {
        bases.extend(argv.last().map(|directory| decision.workdir.join(directory)));
    }
    let mut files: Vec<PathBuf> = Vec::new();
    let mut add = |path: PathBuf, expected: bool| {
        if (expected || path.is_file()) && !files.contains(&path) && files.len() < MOST_FILES {
            files.push(path);
        }
    };
    for argv in commands() {
        for word in argv {
            let word = word.split_once('=').map_or(word.as_str(), |(_, value)| value);
            let like_a_path = word.contains(['/', '.']) && !word.contains(char::is_whitespace);
            for base in &bases {
                add(base.join(word), like_a_path);
            }
        }
        let program = program_of(argv);
        for (_, drivers) in DRIVERS.iter().filter(|(name, _)| *name == program) {
            for driver in *drivers {
                for base in bases.iter().map(PathBuf::as_path).chain([root]) {
                    add(base.join(driver), true);
                }
            }
        }
    }
    files.into_iter().map(|path| FileState { sha256: hash_of(&path), path }).collect()
}

/// Of the content that the name leads to; none when there is nothing.
fn hash_of(path: &Path) -> Option<String> {
    use std::io::Read as _;
    let found = std::fs::metadata(path).ok()?;
    if !found.is_file() {
        return Some(if found.is_dir() { "a directory" } else { "not a file" }.to_owned());
    }
    let file = std::fs::File::open(path).ok()?;
    let size = file.metadata().ok()?.len();
    let mut content = Vec::new();
    file.take(HASHED_BYTES).read_to_end(&mut content).ok()?;
    let mut hasher = Sha256::new();
    hasher.update(size.to_le_bytes());
    hasher.update(&content);
    Some(hex(&hasher.finalize()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
