//! The trace: every decision and every run, in SQLite.
//!
//! Rows are linked by a hash chain in the order of writing, so that a changed, removed or reordered row is found by
//! [`Store::verify`]. A row that is completed later (a step gets its result) has a later link with its new content. What
//! a chain alone cannot show is that its end was cut off: keep [`Verified::head`] elsewhere for that.

mod journal;
mod pending;
mod prune;
mod query;
mod record;
mod rows;
mod spool;
mod verify;

pub use journal::GateEvent;
pub use prune::{Pruned, Retention};
pub use query::{Filter, Which};
pub use record::{RunInfo, RunRecorder};
pub use verify::{Fault, Verified};

use crate::redact::Redactor;
use crate::session::RecordError;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior, types::ValueRef};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a writer waits for the others.
const BUSY: Duration = Duration::from_secs(15);
/// The schema's version in the file, written by this program.
const VERSION: i64 = 6;
/// What leads from each version to the next; the first makes the tables of a new file.
const MIGRATIONS: [&str; 6] = [
    include_str!("schema.sql"),
    include_str!("schema-2.sql"),
    include_str!("schema-3.sql"),
    include_str!("schema-4.sql"),
    include_str!("schema-5.sql"),
    include_str!("schema-6.sql"),
];
/// Written into the file so that another program's database is not taken for a trace ("cmdg").
const APPLICATION_ID: i64 = 0x636d_6467;
/// The hash before the first link.
const GENESIS: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// A trace in a file.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    connection: Mutex<Connection>,
    redactor: Redactor,
    /// Those of runs that began under settings with patterns of their own.
    of_runs: Mutex<BTreeMap<i64, Redactor>>,
}

/// Why the trace cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The trace or its directory cannot be made.
    #[error("cannot make {path} for the trace: {source}; pass another place with --trace")]
    Directory {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is not a trace of this program.
    #[error("{path} is not a cmdgate trace ({what}); move it away, or pass another with --trace")]
    NotATrace {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// The file was written by a newer version.
    #[error(
        "{path} was written by a newer version (schema {found}, this one knows {VERSION}); update cmdgate"
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its schema.
        found: i64,
    },
    /// The trace cannot be written, and not be read as it is either.
    #[error("{path} cannot be written, and {why}: copy it to a place that can be written")]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// Why it cannot be read.
        why: String,
    },
    /// Something in the trace is not as it was written, and removing rows would hide it.
    #[error(
        "{path} has {faults} faults (`harness log verify` lists them), and nothing was removed; keep a copy of it"
    )]
    Faulty {
        /// The file.
        path: PathBuf,
        /// How many.
        faults: usize,
    },
    /// A pattern of the settings cannot be used, so nothing is written: it could hold what the pattern takes out.
    #[error(transparent)]
    Redaction(#[from] crate::redact::PatternError),
    /// What waits to be brought into the trace cannot be read, or nothing can be added to it.
    #[error(
        "{path}, which belongs to the trace, cannot be used: {source}; it must be writable: check its permissions"
    )]
    Spool {
        /// The file beside the trace.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// SQLite failed.
    #[error("the trace {path} cannot be used: {source}; {remedy}")]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// What SQLite said.
        source: rusqlite::Error,
        /// What to do about it.
        remedy: &'static str,
    },
}

impl StoreError {
    /// Whether somebody else has the file locked.
    fn is_busy(&self) -> bool {
        matches!(self, Self::Sqlite { source, .. } if matches!(
            source.sqlite_error_code(),
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
        ))
    }
}

impl From<StoreError> for RecordError {
    fn from(error: StoreError) -> Self {
        Self { what: error.to_string(), remedy: "nothing was run".to_owned() }
    }
}

impl Store {
    /// Opens a trace, and makes it where there is none.
    ///
    /// # Errors
    ///
    /// When the file cannot be made, is not a trace, is damaged, or was written by a newer version.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, StoreError> {
        let path = path.into();
        let begin = Instant::now();
        loop {
            match Self::open_once(path.clone()) {
                // Of two that hold a new file and each wait for the other, SQLite refuses one at once; closed, it lets the
                // other go on.
                Err(error) if error.is_busy() && begin.elapsed() < BUSY => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                opened => return opened,
            }
        }
    }

    fn open_once(path: PathBuf) -> Result<Self, StoreError> {
        if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
            std::fs::create_dir_all(directory)
                .map_err(|source| StoreError::Directory { path: directory.to_path_buf(), source })?;
        }
        make_private(&path).map_err(|source| StoreError::Directory { path: path.clone(), source })?;
        // Opening a FIFO would wait for a writer, and a device has no end.
        crate::read::regular_or_absent(&path)
            .map_err(|error| StoreError::NotATrace { path: path.clone(), what: error.to_string() })?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection =
            Connection::open_with_flags(&path, flags).map_err(|source| sqlite(&path, source))?;
        prepare(&mut connection, &path)?;
        let store = Self {
            path,
            connection: Mutex::new(connection),
            redactor: Redactor::from_environment(),
            of_runs: Mutex::default(),
        };
        store.bring_in()?;
        Ok(store)
    }

    /// Opens a trace to read it. One that cannot be written, such as a copy on a medium for reading only, is read as it is.
    ///
    /// # Errors
    ///
    /// As [`Store::open`]; and when one that cannot be written has to be brought up to date, or has rows in its `-wal`
    /// file.
    pub fn open_to_read(path: impl Into<PathBuf>) -> Result<Self, StoreError> {
        let path = path.into();
        match Self::open(&path) {
            Err(StoreError::Sqlite { source, .. }) if is_unwritable(&source) && path.is_file() => {
                Self::open_as_it_is(path)
            }
            opened => opened,
        }
    }

    fn open_as_it_is(path: PathBuf) -> Result<Self, StoreError> {
        let mut wal = path.clone().into_os_string();
        wal.push("-wal");
        let unwritable = |path: &Path, why: String| StoreError::Unwritable { path: path.to_path_buf(), why };
        if std::fs::metadata(&wal).is_ok_and(|wal| wal.len() > 0) {
            return Err(unwritable(&path, "its -wal file holds rows that cannot be read there".to_owned()));
        }
        if Self::waits_in_spool(&path) {
            return Err(unwritable(
                &path,
                "decisions wait in its -spool file that cannot be brought in".to_owned(),
            ));
        }
        // Without a file for the locks of readers, which cannot be made there; nothing changes what cannot be written.
        let uri = format!("file:{}?immutable=1", percent_encoded(&path));
        let flags =
            OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
        let failed = |source| sqlite(&path, source);
        let connection = Connection::open_with_flags(uri, flags).map_err(failed)?;
        let pragma = |name: &str| {
            connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).map_err(failed)
        };
        let (version, application) = (pragma("user_version")?, pragma("application_id")?);
        if application != APPLICATION_ID {
            return Err(StoreError::NotATrace { path, what: "another program's database".to_owned() });
        }
        if version > VERSION {
            return Err(StoreError::Newer { path, found: version });
        }
        if version < VERSION {
            return Err(unwritable(&path, "it was written by an older version".to_owned()));
        }
        Ok(Self {
            path,
            connection: Mutex::new(connection),
            redactor: Redactor::from_environment(),
            of_runs: Mutex::default(),
        })
    }

    /// The same with another list of secrets than those of this process's environment.
    #[must_use]
    pub fn with_redactor(mut self, redactor: Redactor) -> Self {
        self.redactor = redactor;
        self
    }

    /// What takes secrets out of everything that is written.
    pub fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn connection(&self) -> MutexGuard<'_, Connection> {
        // A panic elsewhere leaves no half-written row: every write is a transaction.
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `write` in one transaction that holds the write lock from its start.
    pub(crate) fn write<T>(
        &self,
        write: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let mut connection = self.connection();
        let run = |connection: &mut Connection| {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let value = write(&transaction)?;
            transaction.commit()?;
            Ok(value)
        };
        run(&mut connection).map_err(|source| sqlite(&self.path, source))
    }
}

fn prepare(connection: &mut Connection, path: &Path) -> Result<(), StoreError> {
    let failed = |source| sqlite(path, source);
    connection.busy_handler(Some(wait())).map_err(failed)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, true).map_err(failed)?;
    connection.pragma_update(None, "journal_mode", "WAL").map_err(failed)?;
    connection.pragma_update(None, "synchronous", "NORMAL").map_err(failed)?;
    let pragma = |connection: &Connection, name: &str| {
        connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).map_err(failed)
    };
    if pragma(connection, "user_version")? == VERSION
        && pragma(connection, "application_id")? == APPLICATION_ID
    {
        return Ok(());
    }
    // Under the write lock, because another process may be making the same file.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
    let version = pragma(&transaction, "user_version")?;
    let application = pragma(&transaction, "application_id")?;
    let tables: i64 =
        transaction.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).map_err(failed)?;
    if application != APPLICATION_ID && (application != 0 || tables != 0) {
        return Err(StoreError::NotATrace {
            path: path.to_path_buf(),
            what: "another program's database".to_owned(),
        });
    }
    if version > VERSION {
        return Err(StoreError::Newer { path: path.to_path_buf(), found: version });
    }
    let done = usize::try_from(version).unwrap_or(0);
    for migration in MIGRATIONS.iter().skip(done) {
        transaction.execute_batch(migration).map_err(failed)?;
    }
    if version == 3 {
        link_messages(&transaction).map_err(failed)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID).map_err(failed)?;
    transaction.pragma_update(None, "user_version", VERSION).map_err(failed)?;
    transaction.commit().map_err(failed)
}

/// Waits for another writer, for [`BUSY`] at the longest. SQLite's own way begins with whole milliseconds, and most writers
/// are done in a fraction of one.
fn wait() -> impl FnMut(i32) -> bool + Send + 'static {
    let mut since = Instant::now();
    move |tries| {
        if tries == 0 {
            since = Instant::now();
        }
        let waited = since.elapsed();
        std::thread::sleep((waited / 4).clamp(Duration::from_micros(100), Duration::from_millis(25)));
        waited < BUSY
    }
}

/// Makes the file where there is none, for its owner alone. An existing one is not touched.
fn make_private(path: &Path) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Ok(_) => Ok(()),
        Err(_) if path.exists() => Ok(()),
        Err(error) => Err(error),
    }
}

/// Whether it failed because nothing can be written there.
fn is_unwritable(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen)
    )
}

/// A path as SQLite takes it in a URI.
fn percent_encoded(path: &Path) -> String {
    path.as_os_str().as_encoded_bytes().iter().fold(String::new(), |mut text, byte| {
        match byte {
            b'/' | b'.' | b'-' | b'_' => text.push(char::from(*byte)),
            byte if byte.is_ascii_alphanumeric() => text.push(char::from(*byte)),
            byte => {
                let _ = write!(text, "%{byte:02X}");
            }
        }
        text
    })
}

fn sqlite(path: &Path, source: rusqlite::Error) -> StoreError {
    let path = path.to_path_buf();
    match source.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => {
            StoreError::NotATrace { path, what: "not an SQLite database".to_owned() }
        }
        Some(ErrorCode::DatabaseCorrupt) => {
            StoreError::NotATrace { path, what: "the database is damaged".to_owned() }
        }
        code => {
            let remedy = match code {
                Some(ErrorCode::DiskFull) => "the disk is full: free some space",
                Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                    "another process holds it locked: end that one, or try again"
                }
                Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => {
                    "it must be writable: check its permissions and those of its directory"
                }
                Some(_) | None => "check the file, or pass another with --trace",
            };
            StoreError::Sqlite { path, source, remedy }
        }
    }
}

/// The present time, as it is written.
fn now() -> String {
    jiff::Timestamp::now().to_string()
}

fn hex(bytes: impl AsRef<[u8]>) -> String {
    bytes.as_ref().iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The tables whose rows are linked.
const LINKED: [&str; 8] = [
    "runs",
    "steps",
    "policy_events",
    "sandbox_events",
    "messages",
    "pending_approvals",
    "prunings",
    "spool",
];

/// A row as JSON, its columns in the order of their names, whichever kind of map `serde_json` was built with.
fn row_json(connection: &Connection, table: &str, id: i64) -> rusqlite::Result<Option<String>> {
    let mut statement = connection.prepare_cached(&format!("SELECT * FROM {table} WHERE id = ?1"))?;
    let names: Vec<String> = statement.column_names().map(ToOwned::to_owned).collect();
    let mut rows = statement.query([id])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let mut columns: Vec<(usize, String)> = names.into_iter().enumerate().collect();
    columns.sort_by(|a, b| a.1.cmp(&b.1));
    let mut object = Map::new();
    for (at, name) in columns {
        let value = match row.get_ref(at)? {
            ValueRef::Null => Value::Null,
            ValueRef::Integer(number) => Value::from(number),
            ValueRef::Real(number) => Value::from(number),
            ValueRef::Text(text) => Value::from(String::from_utf8_lossy(text)),
            ValueRef::Blob(blob) => Value::from(hex(blob)),
        };
        object.insert(name, value);
    }
    Ok(Some(Value::Object(object).to_string()))
}

/// Links the conversations that version 3 wrote without a link.
fn link_messages(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    let ids = transaction
        .prepare("SELECT id FROM messages ORDER BY id")?
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<Vec<i64>>>()?;
    ids.into_iter().try_for_each(|id| link(transaction, "messages", id))
}

/// Links a row that was just written or completed.
fn link(transaction: &Transaction<'_>, table: &str, id: i64) -> rusqlite::Result<()> {
    let content = hex(Sha256::digest(row_json(transaction, table, id)?.unwrap_or_default()));
    let before: Option<String> = match transaction
        .prepare_cached("SELECT hash FROM chain ORDER BY seq DESC LIMIT 1")?
        .query_row([], |row| row.get(0))
    {
        Ok(hash) => Some(hash),
        Err(rusqlite::Error::QueryReturnedNoRows) => None,
        Err(error) => return Err(error),
    };
    let hash = link_hash(before.as_deref().unwrap_or(GENESIS), table, id, &content);
    transaction
        .prepare_cached("INSERT INTO chain (tbl, row_id, content, hash) VALUES (?1, ?2, ?3, ?4)")?
        .execute((table, id, content, hash))?;
    Ok(())
}

fn link_hash(before: &str, table: &str, id: i64, content: &str) -> String {
    hex(Sha256::digest(format!("{before}\n{table}\n{id}\n{content}")))
}

#[cfg(test)]
mod tests;
