//! Finds rows that were changed, removed, added or reordered.

use super::{GENESIS, LINKED, Store, StoreError, hex, link_hash, row_json, sqlite};
use rusqlite::Connection;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// What [`Store::verify`] found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// How many links were checked.
    pub links: u64,
    /// The last hash. Kept elsewhere, it shows that the end of the trace was not cut off.
    pub head: String,
    /// What is wrong, in the order in which it was found.
    pub faults: Vec<Fault>,
}

/// Something wrong in a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The link does not follow from the one before: a link was changed, removed or reordered.
    BrokenLink {
        /// Its number.
        seq: i64,
    },
    /// The row is not what was written.
    Changed {
        /// Its table.
        table: String,
        /// Its number.
        id: i64,
    },
    /// The row is gone.
    Removed {
        /// Its table.
        table: String,
        /// Its number.
        id: i64,
    },
    /// SQLite itself finds the file damaged.
    Damaged {
        /// What it says.
        what: String,
    },
    /// Something in the database can change rows while they are written, or what is read of them.
    Foreign {
        /// Its kind and name.
        what: String,
    },
    /// What waited beside the trace was not as it was written.
    Spool {
        /// What was wrong, when it was found first.
        what: String,
        /// How often something was wrong.
        times: i64,
    },
    /// The row was added without a link.
    Added {
        /// Its table.
        table: String,
        /// Its number.
        id: i64,
    },
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::BrokenLink { seq } => {
                write!(
                    f,
                    "link {seq} does not follow from the one before: a link was changed, removed or reordered"
                )
            }
            Self::Changed { table, id } => write!(f, "row {id} of {table} is not what was written"),
            Self::Removed { table, id } => write!(f, "row {id} of {table} was removed"),
            Self::Added { table, id } => write!(f, "row {id} of {table} was added by something else"),
            Self::Foreign { what } => write!(f, "{what} was added, which can change what is written or read"),
            Self::Spool { what, times } => {
                write!(f, "the spool beside the trace was not as it was written ({times} times): {what}")
            }
            Self::Damaged { what } => write!(f, "the database is damaged: {what}"),
        }
    }
}

impl Fault {
    /// The stable name of the kind.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::BrokenLink { .. } => "broken_link",
            Self::Changed { .. } => "changed",
            Self::Removed { .. } => "removed",
            Self::Added { .. } => "added",
            Self::Foreign { .. } => "foreign",
            Self::Spool { .. } => "spool",
            Self::Damaged { .. } => "damaged",
        }
    }
}

impl Store {
    /// Checks every link and every row.
    ///
    /// # Errors
    ///
    /// When the trace cannot be read. What is wrong in it is in [`Verified::faults`].
    pub fn verify(&self) -> Result<Verified, StoreError> {
        let mut connection = self.connection();
        // One snapshot for all of it, while others go on writing.
        let snapshot = connection.transaction();
        snapshot.and_then(|snapshot| check_chain(&snapshot)).map_err(|source| sqlite(self.path(), source))
    }
}

/// Checks every link and every row as this connection sees them.
pub(super) fn check_chain(connection: &Connection) -> rusqlite::Result<Verified> {
    let mut faults = Vec::new();
    let mut latest: BTreeMap<(String, i64), String> = BTreeMap::new();
    // Where links were removed because of their age, the chain goes on from the last removed one.
    let pruned =
        connection.query_row("SELECT seq, hash FROM prunings ORDER BY seq DESC LIMIT 1", [], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?))
        });
    let (last_removed, mut before) = match pruned {
        Ok(pruned) => pruned,
        Err(rusqlite::Error::QueryReturnedNoRows) => (0, GENESIS.to_owned()),
        Err(error) => return Err(error),
    };
    let mut expected_seq = last_removed.saturating_add(1);
    let mut links = 0;
    let mut statement =
        connection.prepare("SELECT seq, tbl, row_id, content, hash FROM chain ORDER BY seq")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (seq, table, id): (i64, String, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let (content, hash): (String, String) = (row.get(3)?, row.get(4)?);
        if seq != expected_seq || hash != link_hash(&before, &table, id, &content) {
            faults.push(Fault::BrokenLink { seq });
        }
        expected_seq = seq.saturating_add(1);
        before = hash;
        links += 1;
        latest.insert((table, id), content);
    }
    for ((table, id), content) in &latest {
        if !LINKED.contains(&table.as_str()) {
            continue;
        }
        match row_json(connection, table, *id)? {
            None => faults.push(Fault::Removed { table: table.clone(), id: *id }),
            Some(json) if hex(Sha256::digest(&json)) != *content => {
                faults.push(Fault::Changed { table: table.clone(), id: *id });
            }
            Some(_) => {}
        }
    }
    for table in LINKED {
        let mut statement = connection.prepare(&format!("SELECT id FROM {table} ORDER BY id"))?;
        let ids = statement.query_map([], |row| row.get::<_, i64>(0))?;
        for id in ids {
            let id = id?;
            if !latest.contains_key(&(table.to_owned(), id)) {
                faults.push(Fault::Added { table: table.to_owned(), id });
            }
        }
    }
    let mut statement = connection.prepare(
        "SELECT type || ' ' || name FROM sqlite_schema WHERE type IN ('trigger', 'view') ORDER BY name",
    )?;
    let foreign = statement.query_map([], |row| row.get::<_, String>(0))?;
    for what in foreign {
        faults.push(Fault::Foreign { what: what? });
    }
    let mut statement = connection.prepare("SELECT fault, faults FROM spool WHERE fault IS NOT NULL")?;
    let spoiled =
        statement.query_map([], |row| Ok(Fault::Spool { what: row.get(0)?, times: row.get(1)? }))?;
    for fault in spoiled {
        faults.push(fault?);
    }
    let damage: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if damage != "ok" {
        faults.push(Fault::Damaged { what: damage });
    }
    Ok(Verified { links, head: before, faults })
}
