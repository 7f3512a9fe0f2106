//! Reads the trace: what was refused, what ran, what was asked, and everything about one step.

use super::{LINKED, Store, StoreError, row_json, sqlite};
use crate::wire::SCHEMA_VERSION;
use crate::wire::trace::{LoggedStep, StepDetail};
use rusqlite::{Connection, Row, named_params};
use serde_json::Value;

/// Which steps are wanted; all of them when nothing is set.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// What became of them.
    pub which: Option<Which>,
    /// The run.
    pub run: Option<i64>,
    /// Not before this time.
    pub since: Option<jiff::Timestamp>,
    /// Only steps with a higher number.
    pub after: Option<i64>,
    /// At most this many, the newest ones.
    pub limit: Option<u32>,
}

/// What became of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// Denied, by a decision or by an approver.
    Refused,
    /// Started, however it ended.
    Ran,
    /// Needed an approval.
    Asked,
}

/// A step with its first decision and its last answer.
const STEPS: &str = "\
    SELECT s.id, s.run_id, s.step, s.at, r.kind, r.root, s.tool, s.tool_call, s.effect, s.source, s.code, s.verdict,
           d.rule, d.layer, d.reason, a.kind, a.effect, a.reason, s.result, s.ended_at,
           coalesce(
               (SELECT nullif(reason, '') FROM policy_events
                WHERE step_id = s.id AND kind = 'answer' AND effect = 'approve' ORDER BY id DESC LIMIT 1),
               (SELECT 'approval ' || id FROM pending_approvals WHERE step_id = s.id ORDER BY id DESC LIMIT 1),
               CASE WHEN r.kind = 'command' AND r.goal GLOB 'approval [0-9]* of run [0-9]*'
                    THEN substr(r.goal, 1, instr(r.goal, ' of run') - 1) END)
    FROM steps s
    JOIN runs r ON r.id = s.run_id
    LEFT JOIN policy_events d
        ON d.id = (SELECT min(id) FROM policy_events WHERE step_id = s.id AND kind = 'decision')
    LEFT JOIN policy_events a
        ON a.id = (SELECT max(id) FROM policy_events WHERE step_id = s.id AND kind IN ('answer', 'again'))
    WHERE (:run IS NULL OR s.run_id = :run) AND (:since IS NULL OR s.at >= :since) AND s.id > :after
      AND (:id IS NULL OR s.id = :id)";

impl Which {
    const fn condition(self) -> &'static str {
        match self {
            Self::Refused => " AND (s.effect = 'deny' OR a.effect = 'deny')",
            Self::Ran => " AND s.result IS NOT NULL AND json_extract(s.result, '$.outcome') <> 'not_started'",
            Self::Asked => " AND s.effect = 'ask'",
        }
    }
}

impl Store {
    /// The steps that a filter wants, the oldest first.
    ///
    /// # Errors
    ///
    /// When the trace cannot be read.
    pub fn steps(&self, filter: &Filter) -> Result<Vec<LoggedStep>, StoreError> {
        let condition = filter.which.map_or("", Which::condition);
        let query = format!("{STEPS}{condition} ORDER BY s.id DESC LIMIT :limit");
        let since = filter.since.map(|since| since.to_string());
        let read = |connection: &Connection| {
            let mut statement = connection.prepare_cached(&query)?;
            let rows = statement.query_map(
                named_params! {
                    ":run": filter.run,
                    ":since": since,
                    ":after": filter.after.unwrap_or(0),
                    ":id": None::<i64>,
                    ":limit": filter.limit.map_or(-1, i64::from),
                },
                step_of,
            )?;
            let mut steps = rows.collect::<rusqlite::Result<Vec<_>>>()?;
            steps.reverse();
            Ok(steps)
        };
        read(&self.connection()).map_err(|source| sqlite(self.path(), source))
    }

    /// Everything about one step; nothing when there is none of that number.
    ///
    /// # Errors
    ///
    /// When the trace cannot be read.
    pub fn step(&self, id: i64) -> Result<Option<StepDetail>, StoreError> {
        let read = |connection: &Connection| {
            let mut statement = connection.prepare_cached(STEPS)?;
            let found = statement
                .query_map(
                    named_params! { ":run": None::<i64>, ":since": None::<String>, ":after": 0, ":id": id },
                    |row| Ok((step_of(row)?, row.get::<_, Option<String>>(18)?)),
                )?
                .next()
                .transpose()?;
            let Some((step, result)) = found else { return Ok(None) };
            Ok(Some(StepDetail {
                schema_version: SCHEMA_VERSION,
                step,
                result: result.map(|text| json_of(&text)),
                policy_events: rows_of(connection, "policy_events", id)?,
                sandbox_events: rows_of(connection, "sandbox_events", id)?,
            }))
        };
        read(&self.connection()).map_err(|source| sqlite(self.path(), source))
    }

    /// Gives every row of every table to `take`, table by table, in one snapshot; ends early when `take` says no.
    ///
    /// # Errors
    ///
    /// When the trace cannot be read.
    pub fn export(&self, mut take: impl FnMut(&str, &Value) -> bool) -> Result<(), StoreError> {
        let mut connection = self.connection();
        let mut read = || {
            let snapshot = connection.transaction()?;
            for table in LINKED {
                let mut statement = snapshot.prepare(&format!("SELECT id FROM {table} ORDER BY id"))?;
                let ids = statement.query_map([], |row| row.get::<_, i64>(0))?;
                for id in ids {
                    if let Some(row) = row_json(&snapshot, table, id?)?
                        && !take(table, &json_of(&row))
                    {
                        return Ok(());
                    }
                }
            }
            let mut statement =
                snapshot.prepare("SELECT seq, tbl, row_id, content, hash FROM chain ORDER BY seq")?;
            let mut links = statement.query([])?;
            while let Some(link) = links.next()? {
                let row = serde_json::json!({
                    "seq": link.get::<_, i64>(0)?,
                    "tbl": link.get::<_, String>(1)?,
                    "row_id": link.get::<_, i64>(2)?,
                    "content": link.get::<_, String>(3)?,
                    "hash": link.get::<_, String>(4)?,
                });
                if !take("chain", &row) {
                    return Ok(());
                }
            }
            Ok(())
        };
        read().map_err(|source| sqlite(self.path(), source))
    }
}

/// The texts of events and results, which are JSON; what is not is shown as text.
fn json_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::from(text))
}

fn rows_of(connection: &Connection, table: &str, step: i64) -> rusqlite::Result<Vec<Value>> {
    let mut statement =
        connection.prepare_cached(&format!("SELECT id FROM {table} WHERE step_id = ?1 ORDER BY id"))?;
    let ids =
        statement.query_map([step], |row| row.get::<_, i64>(0))?.collect::<rusqlite::Result<Vec<_>>>()?;
    let mut rows = Vec::with_capacity(ids.len());
    for id in ids {
        let Some(text) = row_json(connection, table, id)? else { continue };
        let mut row = json_of(&text);
        if let Some(detail) = row.get_mut("detail")
            && let Some(text) = detail.as_str()
        {
            *detail = json_of(text);
        }
        rows.push(row);
    }
    Ok(rows)
}

fn step_of(row: &Row<'_>) -> rusqlite::Result<LoggedStep> {
    let call = json_of(&row.get::<_, String>(7)?);
    let effect: String = row.get(8)?;
    let answer: Option<(String, String)> =
        match (row.get::<_, Option<String>>(15)?, row.get::<_, Option<String>>(16)?) {
            (Some(kind), Some(effect)) => Some((kind, effect)),
            (None, _) | (_, None) => None,
        };
    let result = row.get::<_, Option<String>>(18)?.map(|text| json_of(&text));
    let said = answer.as_ref().map(|(_, said)| said.as_str());
    let status = match (effect.as_str(), said) {
        ("allow", _) => "allowed",
        ("ask", Some("approve" | "allow")) => "approved",
        ("ask", Some("defer")) => "deferred",
        ("ask", None) => "asked",
        (_, _) => "denied",
    };
    Ok(LoggedStep {
        id: row.get(0)?,
        run: row.get(1)?,
        step: row.get(2)?,
        at: row.get(3)?,
        kind: row.get(4)?,
        root: row.get(5)?,
        tool: row.get(6)?,
        command: line_of(&call),
        call,
        status,
        effect,
        source: row.get(9)?,
        code: row.get(10)?,
        verdict: row.get(11)?,
        rule: row.get(12)?,
        layer: row.get(13)?,
        reason: row.get(14)?,
        answer: answer.map(|(_, said)| said),
        // Not the reason why it was asked about, which is what was decided again.
        answer_reason: row.get(if status == "approved" { 20 } else { 17 })?,
        outcome: result.as_ref().and_then(|result| Some(result.get("outcome")?.as_str()?.to_owned())),
        exit_code: result.as_ref().and_then(|result| result.get("code")?.as_i64()),
        ended_at: row.get(19)?,
    })
}

/// A tool call as one line: its command, its words as a shell would be given them, its path, or all of it.
fn line_of(call: &Value) -> String {
    if let Some(text) = call.get("command").or_else(|| call.get("path")).and_then(Value::as_str) {
        return text.to_owned();
    }
    if let Some(words) = call.get("argv").and_then(Value::as_array) {
        let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
        return crate::words::line(&words);
    }
    call.to_string()
}
