//! Removes what is old or too much, and leaves a chain that can still be checked.
//!
//! Whole runs are removed, the oldest first. The links up to the last one of a removed row go too; rows that stay and
//! whose link is among those are linked anew at the end. A row of `prunings`, itself linked, holds the number and hash
//! of the last removed link: from there the chain goes on.

use super::verify::check_chain;
use super::{Store, StoreError, link, now, row_json, sqlite};
use rusqlite::{Connection, OptionalExtension as _, Transaction, params};

/// What stays.
#[derive(Debug, Clone, Copy, Default)]
pub struct Retention {
    /// Runs that began before this time are removed.
    pub not_before: Option<jiff::Timestamp>,
    /// The oldest runs are removed until the trace uses at most this many bytes.
    pub max_bytes: Option<u64>,
    /// A run that was recorded after a newer one is not taken for older: the clock had jumped.
    pub in_order: bool,
}

/// What was removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pruned {
    /// Runs.
    pub runs: u64,
    /// Rows of all tables.
    pub rows: u64,
    /// Bytes in use before.
    pub bytes_before: u64,
    /// Bytes in use after.
    pub bytes_after: u64,
}

/// Runs that can be removed: ended or long dead, and with no question that still waits for an answer.
const REMOVABLE: &str = "\
    (ended_at IS NOT NULL OR started_at < :dead)
    AND NOT EXISTS (SELECT 1 FROM pending_approvals p WHERE p.run_id = runs.id AND p.state IN ('pending', 'approved'))";

/// The tables whose rows belong to a run, those that others refer to last.
const OF_A_RUN: [(&str, &str); 6] = [
    ("messages", "run_id"),
    ("pending_approvals", "run_id"),
    ("sandbox_events", "run_id"),
    ("policy_events", "run_id"),
    ("steps", "run_id"),
    ("runs", "id"),
];

/// A run without an end that began longer ago than this has died.
const DEAD_AFTER: jiff::SignedDuration = jiff::SignedDuration::from_hours(48);

/// So many runs must have begun since, before a time is believed to have come.
const BELIEVED_AFTER: u32 = 20;
/// Runs are removed for their age when the oldest is older by this than need be, so that it happens once a day.
const SLACK: jiff::SignedDuration = jiff::SignedDuration::from_hours(24);

impl Store {
    /// Removes what the settings do not keep, when the time for it has come. Nothing when there was nothing to remove.
    ///
    /// # Errors
    ///
    /// As [`Store::prune`].
    pub(crate) fn retain(&self, settings: &cmdgate_policy::Trace) -> Result<Option<Pruned>, StoreError> {
        if settings.keep_days.is_none() && settings.max_bytes.is_none() {
            return Ok(None);
        }
        let due = due(&self.connection(), settings).map_err(|source| sqlite(self.path(), source))?;
        let Some(retention) = due else { return Ok(None) };
        let pruned = self.prune(&retention)?;
        Ok((pruned.rows > 0).then_some(pruned))
    }

    /// Removes what `retention` does not keep. Runs that go on, and those with a question that waits, stay.
    ///
    /// # Errors
    ///
    /// When the trace cannot be written, or when something in it is not as it was written: removing rows would hide
    /// that.
    pub fn prune(&self, retention: &Retention) -> Result<Pruned, StoreError> {
        let done = self.write(|transaction| {
            let faults = check_chain(transaction)?.faults;
            if faults.is_empty() { prune(transaction, retention).map(Ok) } else { Ok(Err(faults.len())) }
        })?;
        let pruned = done.map_err(|faults| StoreError::Faulty { path: self.path().to_path_buf(), faults })?;
        if pruned.rows > 0 {
            // Gives the space back; others may be reading, and then it stays free inside the file.
            let _ = self.connection().execute_batch("PRAGMA wal_checkpoint(TRUNCATE); VACUUM;");
        }
        Ok(pruned)
    }
}

fn prune(transaction: &Transaction<'_>, retention: &Retention) -> rusqlite::Result<Pruned> {
    transaction.execute_batch(
        "CREATE TEMP TABLE IF NOT EXISTS doomed (id INTEGER PRIMARY KEY); DELETE FROM temp.doomed;",
    )?;
    let dead = dead_before();
    let mut pruned = Pruned { bytes_before: bytes_in_use(transaction)?, ..Pruned::default() };
    if let Some(not_before) = retention.not_before {
        let before = not_before.to_string();
        let first_newer = if retention.in_order { first_since(transaction, &before)? } else { i64::MAX };
        let chosen = format!(
            "INSERT INTO temp.doomed SELECT id FROM runs WHERE {REMOVABLE} AND started_at < :before AND id < :newer"
        );
        transaction.execute(
            &chosen,
            rusqlite::named_params! { ":dead": dead, ":before": before, ":newer": first_newer },
        )?;
        if let Some(seq) = remove_doomed(transaction, &mut pruned)? {
            cut(transaction, seq, &pruned)?;
        }
    }
    if let Some(most) = retention.max_bytes {
        let chosen = format!(
            "INSERT INTO temp.doomed SELECT id FROM runs WHERE {REMOVABLE} ORDER BY id
             LIMIT max(1, (SELECT count(*) / 20 FROM runs))"
        );
        while bytes_in_use(transaction)? > most {
            if transaction.execute(&chosen, rusqlite::named_params! { ":dead": dead })? == 0 {
                break;
            }
            // The links go at once, because their bytes count as well.
            if let Some(seq) = remove_doomed(transaction, &mut pruned)? {
                cut(transaction, seq, &pruned)?;
            }
        }
    }
    pruned.bytes_after = bytes_in_use(transaction)?;
    Ok(pruned)
}

/// What there is to remove by now, if anything.
fn due(connection: &Connection, settings: &cmdgate_policy::Trace) -> rusqlite::Result<Option<Retention>> {
    let dead = dead_before();
    let mut retention = Retention { in_order: true, ..Retention::default() };
    let believed: Option<String> = connection
        .prepare_cached("SELECT started_at FROM runs ORDER BY id DESC LIMIT 1 OFFSET ?1")?
        .query_row([BELIEVED_AFTER], |row| row.get(0))
        .optional()?;
    let believed = believed.and_then(|at| at.parse::<jiff::Timestamp>().ok());
    if let (Some(days), Some(believed)) = (settings.keep_days, believed) {
        let hours = i64::try_from(days.get()).unwrap_or(i64::MAX).saturating_mul(24);
        let kept = jiff::SignedDuration::try_from_hours(hours).unwrap_or(jiff::SignedDuration::MAX);
        let cut = believed.min(jiff::Timestamp::now()).checked_sub(kept).ok();
        if let (Some(cut), Some(early)) = (cut, cut.and_then(|cut| cut.checked_sub(SLACK).ok())) {
            let old = format!(
                "SELECT EXISTS (SELECT 1 FROM runs WHERE {REMOVABLE} AND started_at < :early AND id < :newer)"
            );
            let newer = first_since(connection, &cut.to_string())?;
            let early = early.to_string();
            let old: bool = connection.prepare_cached(&old)?.query_row(
                rusqlite::named_params! { ":dead": dead, ":early": early, ":newer": newer },
                |row| row.get(0),
            )?;
            retention.not_before = old.then_some(cut);
        }
    }
    if let Some(most) = settings.max_bytes.map(std::num::NonZeroU64::get)
        && bytes_in_use(connection)? > most
    {
        let any = format!("SELECT EXISTS (SELECT 1 FROM runs WHERE {REMOVABLE})");
        let any: bool = connection
            .prepare_cached(&any)?
            .query_row(rusqlite::named_params! { ":dead": dead }, |row| row.get(0))?;
        retention.max_bytes = any.then_some(most / 10 * 9);
    }
    Ok((retention.not_before.is_some() || retention.max_bytes.is_some()).then_some(retention))
}

/// The first run that began at this time or later, in the order of recording.
fn first_since(connection: &Connection, at: &str) -> rusqlite::Result<i64> {
    connection
        .prepare_cached("SELECT coalesce(min(id), ?2) FROM runs WHERE started_at >= ?1")?
        .query_row((at, i64::MAX), |row| row.get(0))
}

fn dead_before() -> String {
    jiff::Timestamp::now().saturating_sub(DEAD_AFTER).map_or_else(|_| String::new(), |at| at.to_string())
}

/// Removes the chosen runs with all that belongs to them; gives the last link of a removed row.
fn remove_doomed(transaction: &Transaction<'_>, pruned: &mut Pruned) -> rusqlite::Result<Option<i64>> {
    let mut last = None;
    for (table, run) in OF_A_RUN {
        let seq: Option<i64> = transaction.query_row(
            &format!(
                "SELECT max(seq) FROM chain WHERE tbl = ?1 AND row_id IN
                 (SELECT id FROM {table} WHERE {run} IN (SELECT id FROM temp.doomed))"
            ),
            [table],
            |row| row.get(0),
        )?;
        last = last.max(seq);
    }
    for (table, run) in OF_A_RUN {
        let removed = transaction
            .execute(&format!("DELETE FROM {table} WHERE {run} IN (SELECT id FROM temp.doomed)"), [])?;
        let removed = u64::try_from(removed).unwrap_or(0);
        pruned.rows += removed;
        if table == "runs" {
            pruned.runs += removed;
        }
    }
    transaction.execute("DELETE FROM temp.doomed", [])?;
    Ok(last)
}

/// Removes the links up to `seq`, and says so in a linked row.
fn cut(transaction: &Transaction<'_>, seq: i64, pruned: &Pruned) -> rusqlite::Result<()> {
    let hash: Option<String> =
        transaction.query_row("SELECT max(hash) FROM chain WHERE seq = ?1", [seq], |row| row.get(0))?;
    // Nothing left to cut: an earlier round of the same pruning went further.
    let Some(hash) = hash else { return Ok(()) };
    let mut statement = transaction.prepare(
        "SELECT tbl, row_id FROM chain GROUP BY tbl, row_id HAVING max(seq) <= ?1 ORDER BY max(seq)",
    )?;
    let early = statement
        .query_map([seq], |row| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?)))?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    for (table, id) in early {
        if row_json(transaction, &table, id)?.is_some() {
            link(transaction, &table, id)?;
        }
    }
    transaction.execute(
        "INSERT INTO prunings (at, seq, hash, runs, rows, reason) VALUES (?1, ?2, ?3, ?4, ?5, 'retention')",
        params![now(), seq, hash, pruned.runs.cast_signed(), pruned.rows.cast_signed()],
    )?;
    link(transaction, "prunings", transaction.last_insert_rowid())?;
    transaction.execute("DELETE FROM chain WHERE seq <= ?1", [seq])?;
    Ok(())
}

fn bytes_in_use(connection: &Connection) -> rusqlite::Result<u64> {
    let pragma = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let pages = pragma("page_count")?.saturating_sub(pragma("freelist_count")?);
    Ok(pages.saturating_mul(pragma("page_size")?).unsigned_abs())
}
