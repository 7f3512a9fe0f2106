//! Questions that wait for an answer: stored with exactly what the person is shown, answered by another process.
//!
//! An answer lifts an ask once. When the command is resumed it is decided again, so that a deny that came meanwhile
//! holds, and what changed since the question is named: the files that the command names, its directory, the policy.

use crate::approve::remember::is_runner;
use crate::approve::terminal;
use crate::config;
use crate::gate::{Action, Decision, Request};
use crate::read;
use crate::session::{RecordId, Session};
use crate::store::{RunRecorder, Store, StoreError};
use crate::{diagnose, present, unwrap, wire, words};
use cmdgate_policy::{Layer, Policy};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Files that decide what a program does although no argument names them.
const DRIVERS: &[(&str, &[&str])] = &[
    ("bun", &["package.json", "bunfig.toml"]),
    ("bundle", &["Gemfile"]),
    ("cargo", &["Cargo.toml", "build.rs", ".cargo/config.toml", "rust-toolchain.toml", "rust-toolchain"]),
    ("cmake", &["CMakeLists.txt", "CMakePresets.json"]),
    ("composer", &["composer.json"]),
    ("deno", &["deno.json", "deno.jsonc", "package.json"]),
    ("docker", &["Dockerfile", "compose.yaml", "compose.yml", "docker-compose.yml"]),
    ("git", &[".git/config"]),
    ("go", &["go.mod"]),
    ("gradle", &["build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"]),
    ("just", &["justfile", "Justfile", ".justfile"]),
    ("make", &["Makefile", "makefile", "GNUmakefile"]),
    ("mix", &["mix.exs"]),
    ("mvn", &["pom.xml"]),
    ("ninja", &["build.ninja"]),
    ("nox", &["noxfile.py"]),
    ("npm", &["package.json", ".npmrc"]),
    ("npx", &["package.json", ".npmrc"]),
    ("pnpm", &["package.json", ".npmrc"]),
    ("poetry", &["pyproject.toml"]),
    ("pre-commit", &[".pre-commit-config.yaml"]),
    ("pytest", &["pyproject.toml", "conftest.py", "setup.cfg", "pytest.ini", "tox.ini"]),
    ("rake", &["Rakefile"]),
    ("task", &["Taskfile.yml", "Taskfile.yaml"]),
    ("tox", &["tox.ini", "pyproject.toml", "setup.cfg"]),
    ("uv", &["pyproject.toml"]),
    ("yarn", &["package.json", ".yarnrc.yml"]),
];
/// So many files that changed around a command are named.
const SHOWN_AROUND: usize = 5;
/// So many entries of a project are looked at for files that changed around a command.
const MOST_AROUND: usize = 20_000;
/// Directories with very many files, in which none is looked for that changed around a command.
const NOT_AROUND: &[&str] = &[".git", "node_modules", "target"];
/// At most so many directories are taken for those in which a command of the line may run.
const MOST_PLACES: usize = 16;
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
    /// What a file tool would write.
    pub content: Option<String>,
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

    /// What was asked for, as one line.
    pub fn line(&self) -> String {
        let text = words::of(&self.request.action);
        match self.request.action {
            Action::Shell(_) | Action::Exec(_) => text.into_owned(),
            Action::Read(_) => format!("read {text}"),
            Action::Write(_) => format!("write {text}"),
        }
    }

    /// Whether it waits for an answer, or for being resumed.
    pub fn is_open(&self) -> bool {
        matches!(self.state.as_str(), "pending" | "approved")
    }

    /// Files of the project that were written since it was asked, for a command that may run any of them without naming
    /// it: as a sentence fragment, nothing when there are none. What lies below `.git`, `node_modules` and `target` is not
    /// looked at, nor more than 20,000 entries.
    pub fn changed_around(&self) -> Option<String> {
        let commands = match &self.request.action {
            Action::Shell(command) => unwrap::commands(command),
            Action::Exec(argv) => unwrap::commands_of_argv(argv),
            Action::Read(_) | Action::Write(_) => return None,
        };
        let runs_files = |argv: &Vec<String>| {
            let program = program_of(argv);
            is_runner(program)
                || DRIVERS.iter().any(|(name, _)| *name == program)
                || argv.first().is_some_and(|program| program.contains('/'))
        };
        let mut argvs = commands.argvs.iter().chain(&commands.possible);
        if !commands.incomplete && !commands.interprets && !argvs.any(runs_files) {
            return None;
        }
        let written = written_since(&self.root, self.at.parse().ok()?);
        let named: Vec<String> = written
            .iter()
            .take(SHOWN_AROUND)
            .map(|path| path.strip_prefix(&self.root).unwrap_or(path).display().to_string())
            .collect();
        match written.len() {
            0 => None,
            1 => Some(format!("{}, which it may run", named.join(", "))),
            count if count > SHOWN_AROUND => {
                Some(format!("{count} files that it may run: {}, …", named.join(", ")))
            }
            count => Some(format!("{count} files that it may run: {}", named.join(", "))),
        }
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
        content: Option<&str>,
        options: &Value,
    ) -> Result<i64, StoreError> {
        let workdir = request.workdir.as_ref().map(|path| path.to_string_lossy());
        let action = match &request.action {
            Action::Shell(command) => json!({ "command": command, "workdir": workdir }),
            Action::Exec(argv) => json!({ "argv": argv, "workdir": workdir }),
            Action::Read(path) => json!({ "read": path.to_string_lossy(), "workdir": workdir }),
            Action::Write(path) => {
                json!({ "write": path.to_string_lossy(), "workdir": workdir, "content": content })
            }
        };
        let written = match (&request.action, content) {
            (Action::Write(path), Some(content)) => {
                Some(present::written(&decision.workdir.join(path), content))
            }
            (_, _) => None,
        };
        let shown = json!({
            "decision": wire::Decided::new(request, decision),
            "text": diagnose::plain_decision(request, decision),
            "written": written,
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
            files: match &request.action {
                // What would be replaced is what the person sees.
                Action::Write(path) => {
                    let path = decision.workdir.join(path);
                    json!([FileState { sha256: hash_of(&path), path }])
                }
                Action::Shell(_) | Action::Exec(_) | Action::Read(_) => {
                    json!(files_of(decision, session.gate().root()))
                }
            },
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

/// Hash of all layers and settings of a session, without those that it was called with: an agent's run sets other ones
/// than `harness approvals resume`, which is given them with the question.
pub fn policy_hash(session: &Session) -> String {
    let whole = session.gate().policy();
    let called_with = |layer: &Layer| {
        layer.origin.is_none() && (layer.name == config::COMMAND_LINE || layer.name == config::CONTRACT)
    };
    let mut policy = Policy::with_defaults(whole.base_defaults());
    for layer in whole.layers().iter().filter(|layer| !called_with(layer)) {
        policy.push_layer(layer.clone());
    }
    let layers = policy.to_toml().unwrap_or_else(|errors| errors.to_string());
    let settings = serde_json::to_string(&policy.settings()).unwrap_or_default();
    hex(&Sha256::digest(format!("{layers}\n{settings}")))
}

/// The files that a command names, and those that drive its programs, each under the name by which it is reached: one that
/// is not there yet may be made before the answer, and a symlink may come to lead elsewhere.
pub(crate) fn files_of(decision: &Decision, root: &Path) -> Vec<FileState> {
    let commands = || decision.commands.argvs.iter().chain(&decision.commands.possible);
    let places = places_of(commands(), &decision.workdir);
    let mut files: Vec<PathBuf> = Vec::new();
    let mut add = |path: PathBuf, expected: bool| {
        if (expected || path.is_file()) && !files.contains(&path) && files.len() < MOST_FILES {
            files.push(path);
        }
    };
    for argv in commands() {
        // `make -C sub` and `npm --prefix=sub` are driven by what lies there.
        let mut driven = places.clone();
        for word in argv {
            for word in values_of(word) {
                let like_a_path = word.contains(['/', '.']) && !word.contains(char::is_whitespace);
                for place in &places {
                    let path = place.join(word);
                    if path.is_dir() && driven.len() < MOST_PLACES {
                        driven.push(path);
                    } else {
                        add(path, like_a_path);
                    }
                }
            }
        }
        let program = program_of(argv);
        for (_, drivers) in DRIVERS.iter().filter(|(name, _)| *name == program) {
            for place in driven.iter().map(PathBuf::as_path).chain([root]) {
                for driver in *drivers {
                    add(place.join(driver), true);
                }
            }
        }
    }
    files.into_iter().map(|path| FileState { sha256: hash_of(&path), path }).collect()
}

/// The files below `root` whose content or metadata was written after a time, in the order of their paths.
fn written_since(root: &Path, at: jiff::Timestamp) -> Vec<PathBuf> {
    let (mut written, mut seen) = (Vec::new(), 0_usize);
    let mut directories = VecDeque::from([root.to_path_buf()]);
    while let Some(directory) = directories.pop_front() {
        for entry in std::fs::read_dir(&directory).into_iter().flatten().flatten() {
            seen += 1;
            if seen > MOST_AROUND {
                break;
            }
            // Of a symlink itself: where it leads is looked at if it is in the project.
            let Ok(found) = entry.metadata() else { continue };
            if found.is_dir() {
                if !NOT_AROUND.iter().any(|name| entry.file_name() == *name) {
                    directories.push_back(entry.path());
                }
            } else if changed_at(&found).is_some_and(|changed| changed > at) {
                written.push(entry.path());
            }
        }
    }
    written.sort();
    written
}

/// When a file was changed last. Unlike the time of its content, nobody can set this one back.
#[cfg(unix)]
fn changed_at(found: &std::fs::Metadata) -> Option<jiff::Timestamp> {
    use std::os::unix::fs::MetadataExt as _;
    jiff::Timestamp::new(found.ctime(), i32::try_from(found.ctime_nsec()).ok()?).ok()
}

#[cfg(not(unix))]
fn changed_at(found: &std::fs::Metadata) -> Option<jiff::Timestamp> {
    jiff::Timestamp::try_from(found.modified().ok()?).ok()
}

/// A text that is another one as soon as one of these files has another content.
pub(crate) fn fingerprint(files: &[FileState]) -> String {
    let mut hasher = Sha256::new();
    for file in files {
        hasher.update(file.path.as_os_str().as_encoded_bytes());
        hasher.update([0]);
        hasher.update(file.sha256.as_deref().unwrap_or_default());
        hasher.update([0]);
    }
    hex(&hasher.finalize())
}

fn program_of(argv: &[String]) -> &str {
    argv.first().and_then(|program| program.rsplit('/').next()).unwrap_or_default()
}

/// The directories in which the commands of a line may run: where it begins, and wherever its `cd` lead, one after the
/// other or each by itself.
fn places_of<'a>(commands: impl Iterator<Item = &'a Vec<String>>, workdir: &Path) -> Vec<PathBuf> {
    let mut places = vec![workdir.to_path_buf()];
    for argv in commands.filter(|argv| matches!(program_of(argv), "cd" | "pushd")) {
        let Some(to) = argv.get(1..).and_then(<[String]>::last) else { continue };
        let reached: Vec<PathBuf> = places.iter().map(|place| place.join(to)).collect();
        for place in reached {
            if !places.contains(&place) && places.len() < MOST_PLACES {
                places.push(place);
            }
        }
    }
    places
}

/// What a word may name: itself, the value after its `=`, or the one right behind a short flag.
fn values_of(word: &str) -> impl Iterator<Item = &str> {
    let assigned = word.split_once('=').map(|(_, value)| value);
    let attached = word.strip_prefix('-').filter(|rest| !rest.starts_with('-')).and_then(|rest| {
        let mut rest = rest.chars();
        rest.next().map(|_| rest.as_str())
    });
    let whole = Some(word).filter(|word| !word.starts_with('-'));
    [assigned, attached, whole].into_iter().flatten().filter(|value| !value.is_empty() && value.len() < 4096)
}

/// Of the content that the name leads to; none when there is nothing.
fn hash_of(path: &Path) -> Option<String> {
    use std::io::Read as _;
    let found = std::fs::metadata(path).ok()?;
    if !found.is_file() {
        return Some(if found.is_dir() { "a directory" } else { "not a file" }.to_owned());
    }
    let Ok(file) = read::open(path) else { return Some("not readable".to_owned()) };
    let found = file.metadata().ok()?;
    let mut content = Vec::new();
    file.take(HASHED_BYTES).read_to_end(&mut content).ok()?;
    let mut hasher = Sha256::new();
    hasher.update(found.len().to_le_bytes());
    hasher.update(&content);
    #[cfg(unix)]
    if found.len() > HASHED_BYTES {
        // Of what is not read, the times say whether it was written.
        use std::os::unix::fs::MetadataExt as _;
        let written = (found.mtime(), found.mtime_nsec(), found.ctime(), found.ctime_nsec());
        hasher.update(format!("{} {} {written:?}", found.dev(), found.ino()));
    }
    Some(hex(&hasher.finalize()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
