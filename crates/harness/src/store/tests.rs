use super::*;
use crate::approve::Answer;
use crate::gate::{Decision, Gate, Request};
use crate::session::{Recorder, Session};
use cmdgate_policy::{Effect, Policy};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

const INFO: RunInfo = RunInfo {
    kind: "command",
    goal: None,
    root: String::new(),
    sandbox: "read_only",
    approval: "on_request",
};

fn decide(command: &str) -> (Request, Decision) {
    let root = tempfile::tempdir().unwrap();
    let policy = Policy::default().layer("test").deny_exec("rm").ask_exec("npm **");
    let gate = Gate::new(root.path(), policy.clone(), policy.settings()).unwrap();
    let request = Request::shell(command);
    let decision = gate.decide(&request);
    (request, decision)
}

fn plain_session(root: &Path) -> Session {
    let policy = Policy::default();
    let settings = policy.settings();
    Session::new(root, crate::config::Loaded { policy, settings, origins: Vec::new() }).unwrap()
}

fn record(store: &Store, commands: &[&str]) -> i64 {
    let run = store.begin(&INFO).unwrap();
    for command in commands {
        let (request, decision) = decide(command);
        let step = run.decided(&request, &decision).unwrap();
        if decision.effect == Effect::Ask {
            run.answered(step, &request, &decision, &Answer::Deny { reason: "not today".into() }).unwrap();
        }
    }
    run.finish("done").unwrap();
    run.run()
}

fn set_time(store: &Store, run: i64, at: &str) {
    // As if it had been recorded then: the row and a link for it.
    store
        .write(|transaction| {
            transaction.execute("UPDATE runs SET started_at = ?2 WHERE id = ?1", (run, at))?;
            link(transaction, "runs", run)
        })
        .unwrap();
}

fn faults(store: &Store) -> Vec<&'static str> {
    store.verify().unwrap().faults.iter().map(Fault::kind).collect()
}

#[test]
fn what_was_refused_ran_and_asked_is_one_query_each() {
    // contract: P12
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path().join("trace.db")).unwrap();
    let run = record(&store, &["ls", "rm x", "npm test"]);
    let commands = |which| {
        let filter = Filter { which, ..Filter::default() };
        store.steps(&filter).unwrap().into_iter().map(|step| (step.command, step.status)).collect::<Vec<_>>()
    };
    let pair = |command: &str, status| (command.to_owned(), status);
    assert_eq!(
        commands(None),
        [pair("ls", "allowed"), pair("rm x", "denied"), pair("npm test", "denied")],
        "allowed actions are recorded too"
    );
    assert_eq!(commands(Some(Which::Refused)), [pair("rm x", "denied"), pair("npm test", "denied")]);
    assert_eq!(commands(Some(Which::Asked)), [pair("npm test", "denied")]);
    assert_eq!(commands(Some(Which::Ran)), []);
    let refused = store.steps(&Filter { which: Some(Which::Refused), run: Some(run), ..Filter::default() });
    let step = refused.unwrap().remove(0);
    assert_eq!((step.rule.as_deref(), step.layer.as_deref()), (Some("rm"), Some("test")));
    let detail = store.step(step.id).unwrap().unwrap();
    assert_eq!(detail.policy_events[0]["act"], "exec");
    assert!(store.step(99).unwrap().is_none());
    let later = Filter { since: Some(jiff::Timestamp::MAX), ..Filter::default() };
    assert!(store.steps(&later).unwrap().is_empty());
}

#[test]
fn changed_removed_added_and_reordered_rows_are_found() {
    // contract: P12
    for (harm, expected) in [
        ("UPDATE steps SET effect = 'allow' WHERE id = 2", "changed"),
        ("DELETE FROM policy_events WHERE id = 2", "removed"),
        ("INSERT INTO runs (started_at, kind, root, sandbox, approval) VALUES ('', '', '', '', '')", "added"),
        ("DELETE FROM chain WHERE seq = 3", "broken_link"),
        (
            "UPDATE chain SET seq = 1000 WHERE seq = 2; UPDATE chain SET seq = 2 WHERE seq = 3; UPDATE chain SET seq = 3 WHERE seq = 1000",
            "broken_link",
        ),
        ("DELETE FROM chain WHERE seq = 1", "broken_link"),
        (
            "CREATE TRIGGER hides AFTER INSERT ON steps BEGIN UPDATE steps SET effect = 'deny' WHERE id = new.id; END",
            "foreign",
        ),
        ("CREATE VIEW shows AS SELECT 1", "foreign"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path().join("trace.db")).unwrap();
        record(&store, &["ls", "rm x", "cat a"]);
        assert_eq!(faults(&store), <[&str; 0]>::default());
        store.connection().execute_batch(&format!("PRAGMA foreign_keys = OFF; {harm}")).unwrap();
        assert!(faults(&store).contains(&expected), "{harm}: {:?}", faults(&store));
    }
}

#[test]
fn old_runs_are_removed_and_the_rest_is_still_checked() {
    // contract: P12
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path().join("trace.db")).unwrap();
    let (a, b, c) = (record(&store, &["ls"]), record(&store, &["rm x"]), record(&store, &["npm test"]));
    // The clock jumped: the middle run seems to be the oldest, another lies in the future.
    set_time(&store, b, "2001-01-01T00:00:00Z");
    set_time(&store, c, "2101-01-01T00:00:00Z");
    assert_eq!(faults(&store), <[&str; 0]>::default());
    let yesterday = jiff::Timestamp::now() - jiff::SignedDuration::from_hours(24);
    let pruned = store.prune(&Retention { not_before: Some(yesterday), ..Retention::default() }).unwrap();
    assert_eq!((pruned.runs, pruned.rows > 2), (1, true));
    let left: Vec<i64> = store.steps(&Filter::default()).unwrap().iter().map(|step| step.run).collect();
    assert_eq!(left, [a, c]);
    assert_eq!(faults(&store), <[&str; 0]>::default());
    record(&store, &["cat a"]);
    assert_eq!(faults(&store), <[&str; 0]>::default());
    // What stayed is still protected, and a faulty trace is not pruned any further.
    store.connection().execute("UPDATE steps SET effect = 'deny' WHERE run_id = ?1", [a]).unwrap();
    assert_eq!(faults(&store), ["changed"]);
    let all = Retention { not_before: Some(jiff::Timestamp::MAX), ..Retention::default() };
    assert!(matches!(store.prune(&all), Err(StoreError::Faulty { faults: 1, .. })));
}

#[test]
fn a_trace_is_kept_below_a_size() {
    // contract: P12
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path().join("trace.db")).unwrap();
    let long = format!("cat {}", "x".repeat(4000));
    for _ in 0..60 {
        record(&store, &[&long]);
    }
    let most = 300 * 1024;
    let pruned = store.prune(&Retention { max_bytes: Some(most), ..Retention::default() }).unwrap();
    assert!(pruned.bytes_before > most && pruned.bytes_after <= most, "{pruned:?}");
    let steps = store.steps(&Filter::default()).unwrap();
    assert!(!steps.is_empty() && steps.last().unwrap().run == 60, "the newest stay");
    assert_eq!(faults(&store), <[&str; 0]>::default());
    assert_eq!(store.prune(&Retention::default()).unwrap().rows, 0);
}

fn keep(days: Option<u64>, bytes: Option<u64>) -> cmdgate_policy::Trace {
    let mut trace = cmdgate_policy::Trace::default();
    trace.keep_days = days.and_then(std::num::NonZeroU64::new);
    trace.max_bytes = bytes.and_then(std::num::NonZeroU64::new);
    trace
}

fn days_ago(days: i64) -> String {
    (jiff::Timestamp::now() - jiff::SignedDuration::from_hours(24 * days)).to_string()
}

#[test]
fn what_the_settings_do_not_keep_is_removed_once_a_day_and_the_rest_is_still_checked() {
    // contract: P12
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path().join("trace.db")).unwrap();
    let runs: Vec<i64> = (0..25).map(|_| record(&store, &["ls"])).collect();
    assert!(store.retain(&keep(Some(30), Some(1 << 30))).unwrap().is_none(), "nothing is old or large");
    set_time(&store, runs[0], &days_ago(40));
    set_time(&store, runs[1], &days_ago(39));
    assert!(store.retain(&keep(None, None)).unwrap().is_none(), "without settings nothing is ever removed");
    assert!(store.retain(&keep(Some(100), None)).unwrap().is_none());
    let pruned = store.retain(&keep(Some(30), None)).unwrap().unwrap();
    assert_eq!(pruned.runs, 2);
    assert_eq!(faults(&store), <[&str; 0]>::default());
    // Half a day over the limit is no reason to look at the whole trace again.
    store
        .write(|t| {
            t.execute("UPDATE runs SET started_at = ?1 WHERE id = ?2", (days_ago(30), runs[2]))
                .and_then(|_| link(t, "runs", runs[2]))
        })
        .unwrap();
    assert!(store.retain(&keep(Some(30), None)).unwrap().is_none());
    let prunings: i64 =
        store.connection().query_row("SELECT count(*) FROM prunings", [], |row| row.get(0)).unwrap();
    assert_eq!(prunings, 1, "what was removed stands in the trace");
    // What was changed is not removed: that would hide it.
    set_time(&store, runs[2], &days_ago(50));
    store.connection().execute("UPDATE steps SET effect = 'deny' WHERE run_id = ?1", [runs[3]]).unwrap();
    assert!(matches!(store.retain(&keep(Some(30), None)), Err(StoreError::Faulty { .. })));
}

#[test]
fn a_clock_that_jumps_does_not_cost_the_trace() {
    // contract: P12
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path().join("trace.db")).unwrap();
    let runs: Vec<i64> = (0..30).map(|_| record(&store, &["ls"])).collect();
    // Ahead for some runs: the time that they claim is not believed.
    for run in &runs[25..] {
        set_time(&store, *run, "2101-01-01T00:00:00Z");
    }
    assert!(store.retain(&keep(Some(30), None)).unwrap().is_none());
    // Back for one: it came after newer ones, so it is not older than they are.
    set_time(&store, runs[10], "1970-01-01T00:00:00Z");
    assert!(store.retain(&keep(Some(30), None)).unwrap().is_none());
    // What is old all the same goes.
    set_time(&store, runs[0], &days_ago(90));
    assert_eq!(store.retain(&keep(Some(30), None)).unwrap().unwrap().runs, 1);
    assert_eq!(faults(&store), <[&str; 0]>::default());
}

#[test]
fn the_settings_bound_the_size_of_a_trace() {
    // contract: P12
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path().join("trace.db")).unwrap();
    let long = format!("cat {}", "x".repeat(4000));
    for _ in 0..60 {
        record(&store, &[&long]);
    }
    let most = 300 * 1024;
    let pruned = store.retain(&keep(None, Some(most))).unwrap().unwrap();
    assert!(pruned.bytes_before > most && pruned.bytes_after <= most / 10 * 9, "{pruned:?}");
    assert!(store.retain(&keep(None, Some(most))).unwrap().is_none(), "and not again at once");
    assert_eq!(faults(&store), <[&str; 0]>::default());
}

#[test]
fn conversations_are_linked_exported_and_brought_up_to_date() {
    // contract: P12
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("trace.db");
    let store = Store::open(&path).unwrap();
    let run = store.begin(&INFO).unwrap();
    run.keep_message(serde_json::json!({ "role": "user", "text": "mend it" })).unwrap();
    run.finish("done").unwrap();
    assert_eq!(faults(&store), <[&str; 0]>::default());
    let mut exported = Vec::new();
    store
        .export(|table, row| {
            exported.push((table.to_owned(), row.clone()));
            true
        })
        .unwrap();
    let (_, message) = exported.iter().find(|(table, _)| table == "messages").unwrap();
    assert!(message["message"].as_str().unwrap().contains("mend it"));
    store.connection().execute("UPDATE messages SET message = 'x'", []).unwrap();
    assert_eq!(faults(&store), ["changed"]);
    store.connection().execute("DELETE FROM messages", []).unwrap();
    assert_eq!(faults(&store), ["removed"]);
    drop(store);

    // As version 3 left it: a conversation without links.
    let path = dir.path().join("three.db");
    let third = Connection::open(&path).unwrap();
    for migration in &MIGRATIONS[..3] {
        third.execute_batch(migration).unwrap();
    }
    third.pragma_update(None, "application_id", APPLICATION_ID).unwrap();
    third.pragma_update(None, "user_version", 3).unwrap();
    drop(third);
    let mut third = Connection::open(&path).unwrap();
    let transaction = third.transaction().unwrap();
    transaction
        .execute_batch(
            "INSERT INTO runs (started_at, kind, root, sandbox, approval) VALUES ('2026-01-01T00:00:00Z', 'agent', '', '', '');
             INSERT INTO messages (run_id, at, message) VALUES (1, '', '{}'), (1, '', '{}')",
        )
        .unwrap();
    link(&transaction, "runs", 1).unwrap();
    transaction.commit().unwrap();
    drop(third);
    let store = Store::open(&path).unwrap();
    assert_eq!(faults(&store), <[&str; 0]>::default());
    assert_eq!(store.verify().unwrap().links, 3);
    store.connection().execute("DELETE FROM messages WHERE id = 1", []).unwrap();
    assert_eq!(faults(&store), ["removed"]);
}

#[test]
fn patterns_of_the_settings_are_taken_out_of_everything() {
    // contract: S19, P12
    let dir = tempfile::tempdir().unwrap();
    let mut policy = Policy::default().layer("test");
    let mut layer = cmdgate_policy::Layer::new("user");
    layer.settings.trace.redact = vec![r"CUST-[0-9]{6}".to_owned()];
    policy = policy.with_layer(layer);
    let loaded = |policy: &Policy| crate::config::Loaded {
        policy: policy.clone(),
        settings: policy.settings(),
        origins: Vec::new(),
    };
    let session = Session::new(dir.path(), loaded(&policy)).unwrap();
    let path = dir.path().join("traces/trace.db");
    let store = Store::open(&path).unwrap();
    let run = store.begin_in("command", Some("look for CUST-104711".to_owned()), &session).unwrap();
    let (request, decision) = decide("grep CUST-104711 log.txt");
    run.decided(&request, &decision).unwrap();
    run.keep_message(serde_json::json!({ "role": "user", "text": "CUST-104711" })).unwrap();
    run.gate_event(None, GateEvent::Output, serde_json::json!({ "output": ["CUST-104711"] })).unwrap();
    store.reopen(run.run()).decided(&request, &decision).unwrap();
    drop(store);
    let bytes: Vec<u8> = fs::read_dir(path.parent().unwrap())
        .unwrap()
        .flat_map(|file| fs::read(file.unwrap().path()).unwrap())
        .collect();
    let text = String::from_utf8_lossy(&bytes);
    assert!(!text.contains("CUST-104711") && text.contains("[redacted: custom]"));
    // One that cannot be used stops the writing; files are checked when they are read, but a program can set it.
    let mut layer = cmdgate_policy::Layer::new("program");
    layer.settings.trace.redact = vec!["(".to_owned()];
    let session = Session::new(dir.path(), loaded(&policy.with_layer(layer))).unwrap();
    let store = Store::open(&path).unwrap();
    let error = store.begin_in("command", None, &session).unwrap_err().to_string();
    assert!(error.contains("trace.redact"), "{error}");
}

#[test]
fn decisions_that_are_recorded_at_once_are_there_whole_or_not_at_all() {
    // contract: P12
    let dir = tempfile::tempdir().unwrap();
    let session = plain_session(dir.path());
    let store = Store::open(dir.path().join("trace.db")).unwrap();
    let decisions = [decide("ls"), decide("rm x")];
    let (run, steps) = store.record_decisions("hook", None, &session, &decisions, "answered").unwrap();
    assert_eq!(store.outcome(run).unwrap().as_deref(), Some("answered"));
    let listed = store.steps(&Filter { run: Some(run), ..Filter::default() }).unwrap();
    assert_eq!(listed.iter().map(|step| step.id).collect::<Vec<_>>(), [steps[0].0, steps[1].0]);
    assert_eq!((listed[0].command.as_str(), listed[1].status), ("ls", "denied"));
    // Each row has one link: a run, and two of each decision.
    assert_eq!((store.verify().unwrap().links, faults(&store).len()), (5, 0));

    let refuse = "CREATE TEMP TRIGGER full BEFORE INSERT ON policy_events WHEN new.step_id > 3
                  BEGIN SELECT raise(ABORT, 'the disk is full'); END";
    store.connection().execute_batch(refuse).unwrap();
    assert!(store.record_decisions("hook", None, &session, &decisions, "answered").is_err());
    assert_eq!((store.steps(&Filter::default()).unwrap().len(), store.verify().unwrap().links), (2, 5));
}

/// A trace to which processes write that answer once, and the file beside it.
struct Spooled {
    dir: tempfile::TempDir,
    session: Session,
    path: PathBuf,
    spool: PathBuf,
}

impl Spooled {
    /// With so many decisions, of which the first is in the trace and the others wait.
    fn with(count: usize) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let session = plain_session(dir.path());
        let (path, spool) = (dir.path().join("trace.db"), dir.path().join("trace.db-spool"));
        let spooled = Self { dir, session, path, spool };
        (1..=count).for_each(|number| spooled.note(&format!("ls {number}")));
        spooled
    }

    fn note(&self, command: &str) {
        self.try_note(command).unwrap();
    }

    fn try_note(&self, command: &str) -> Result<(), StoreError> {
        Store::note_decisions(&self.path, "hook", None, &self.session, &[decide(command)], "answered")
    }

    fn lines(&self) -> Vec<String> {
        fs::read_to_string(&self.spool).unwrap().split_inclusive('\n').map(ToOwned::to_owned).collect()
    }

    /// Every command in the order of recording, and the kinds of all faults.
    fn opened(&self) -> (Vec<String>, Vec<&'static str>) {
        let store = Store::open(&self.path).unwrap();
        let steps = store.steps(&Filter::default()).unwrap();
        (steps.into_iter().map(|step| step.command).collect(), faults(&store))
    }

    /// What was kept of spools in which something was wrong.
    fn kept(&self) -> Vec<String> {
        let files = fs::read_dir(self.dir.path()).unwrap().map(|file| file.unwrap().path());
        let kept = files.filter(|path| path.to_string_lossy().contains("-spool-faulty-"));
        kept.map(|path| String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned()).collect()
    }
}

fn numbered(numbers: impl IntoIterator<Item = usize>) -> Vec<String> {
    numbers.into_iter().map(|number| format!("ls {number}")).collect()
}

#[test]
fn what_waits_beside_the_trace_is_brought_in_by_whoever_opens_it() {
    // contract: P12
    let spooled = Spooled::with(4);
    assert_eq!(spooled.lines().len(), 1 + 3);
    assert_eq!(fs::metadata(&spooled.path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(&spooled.spool).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(spooled.opened(), (numbered(1..=4), vec![]));
    assert_eq!(spooled.lines().len(), 1);
    spooled.note("ls 5");
    assert_eq!(spooled.opened(), (numbered(1..=5), vec![]));
    // It says when it was decided, not when it was brought in.
    spooled.note("rm 6");
    let line = spooled.lines().remove(1);
    let store = Store::open(&spooled.path).unwrap();
    let step = store.steps(&Filter::default()).unwrap().pop().unwrap();
    assert_eq!((step.command.as_str(), step.status), ("rm 6", "denied"));
    let event = &store.step(step.id).unwrap().unwrap().policy_events[0];
    assert!(line.contains(&step.at) && line.contains(event["at"].as_str().unwrap()), "{line}");
    // What needs numbers is written to the trace itself, after what waits.
    spooled.note("ls 7");
    store.record_decisions("hook", None, &spooled.session, &[decide("ls 8")], "answered").unwrap();
    drop(store);
    assert_eq!(spooled.opened().0.len(), 8);
}

#[test]
fn a_process_that_was_killed_leaves_neither_gaps_nor_copies() {
    // contract: P12
    let spooled = Spooled::with(4);
    // Killed when the lines were in the trace, and not yet gone from the spool.
    let before = fs::read(&spooled.spool).unwrap();
    assert_eq!(spooled.opened(), (numbered(1..=4), vec![]));
    fs::write(&spooled.spool, &before).unwrap();
    spooled.note("ls 5");
    assert_eq!(spooled.opened(), (numbered(1..=5), vec![]));
    // Killed in the midst of a line, which so was never answered for.
    for half in [&br#"{"run":{"at":"2026-"#[..], b"{", &[0xC3]] {
        spooled.note("rm 1");
        let number = spooled.opened().0.len();
        let mut file = fs::OpenOptions::new().append(true).open(&spooled.spool).unwrap();
        std::io::Write::write_all(&mut file, half).unwrap();
        spooled.note("rm 2");
        assert_eq!((spooled.opened().0.len(), spooled.opened().1), (number + 1, vec![]));
    }
    // Killed before there was a spool.
    fs::remove_file(&spooled.path).unwrap();
    fs::remove_file(&spooled.spool).unwrap();
    drop(Store::open(&spooled.path).unwrap());
    spooled.note("ls 1");
    spooled.note("ls 2");
    assert_eq!(spooled.opened(), (numbered(1..=2), vec![]));
}

#[test]
fn what_is_changed_while_it_waits_is_found_and_nothing_of_it_lost() {
    // contract: P12
    type Change = fn(&mut Vec<String>);
    let changes: [(&str, &[usize], Change); 9] = [
        ("a word", &[1, 2, 9, 4], |lines| lines[2] = lines[2].replace("ls 3", "ls 9")),
        ("a link", &[1, 2, 3, 4], |lines| lines[2] = line_with_another_link(&lines[2])),
        ("a line is gone", &[1, 2, 4], |lines| drop(lines.remove(2))),
        ("two have changed places", &[1, 3, 2, 4], |lines| lines.swap(1, 2)),
        ("a line is there twice", &[1, 2, 2, 3, 4], |lines| lines.insert(1, lines[1].clone())),
        ("a foreign line", &[1, 2, 3, 4], |lines| lines.insert(2, "{}\n".to_owned())),
        ("a foreign member", &[1, 2, 4], |lines| lines[2] = lines[2].replacen('{', r#"{"x":1,"#, 1)),
        ("the first line is gone", &[1, 2, 3, 4], |lines| drop(lines.remove(0))),
        ("the first line is another", &[1, 2, 3, 4], |lines| lines[0] = line_with_another_link(&lines[0])),
    ];
    for (what, expected, change) in changes {
        let spooled = Spooled::with(4);
        let mut lines = spooled.lines();
        change(&mut lines);
        fs::write(&spooled.spool, lines.concat()).unwrap();
        assert_eq!(spooled.opened(), (numbered(expected.iter().copied()), vec!["spool"]), "{what}");
        assert_eq!(spooled.kept(), [lines.concat()], "{what}");
        // It goes on, and what was wrong stays known.
        spooled.note("ls 5");
        assert_eq!(spooled.opened().0.len(), expected.len() + 1, "{what}");
        assert_eq!((spooled.opened().1, spooled.kept().len()), (vec!["spool"], 1), "{what}");
    }
}

fn line_with_another_link(line: &str) -> String {
    let (rest, last) = line.split_at(line.len() - "0\"}\n".len());
    let (old, end) = last.split_at(1);
    format!("{rest}{}{end}", if old == "0" { "1" } else { "0" })
}

#[test]
fn a_spool_that_is_taken_away_or_put_back_is_noticed() {
    // contract: P12
    let spooled = Spooled::with(3);
    let old = fs::read(&spooled.spool).unwrap();
    fs::remove_file(&spooled.spool).unwrap();
    // Who opens the trace cannot know whether any hook came.
    assert_eq!(spooled.opened(), (numbered(1..=1), vec![]));
    spooled.note("ls 4");
    assert_eq!(spooled.opened(), (vec!["ls 1".to_owned(), "ls 4".to_owned()], vec!["spool"]));

    let spooled = Spooled::with(3);
    spooled.opened();
    spooled.note("ls 4");
    spooled.opened();
    fs::write(&spooled.spool, &old).unwrap();
    let (commands, faults) = spooled.opened();
    assert_eq!((commands.len(), faults), (6, vec!["spool"]));

    // One that waits for another trace, or that somebody made.
    let spooled = Spooled::with(3);
    fs::remove_file(&spooled.path).unwrap();
    assert_eq!(spooled.opened(), (numbered(2..=3), vec!["spool"]));

    for content in ["", "\n", "{}", "notes\n"] {
        let spooled = Spooled::with(3);
        fs::write(&spooled.spool, content).unwrap();
        spooled.note("ls 4");
        assert_eq!(
            spooled.opened(),
            (vec!["ls 1".to_owned(), "ls 4".to_owned()], vec!["spool"]),
            "{content:?}"
        );
    }
    // What is no file is no place to write to.
    let spooled = Spooled::with(3);
    fs::remove_file(&spooled.spool).unwrap();
    fs::create_dir(&spooled.spool).unwrap();
    let error = spooled.try_note("ls 4").unwrap_err().to_string();
    assert!(error.contains("trace.db-spool") && error.contains("it is a directory"), "{error}");
    // Nor is what a link leads to, which is neither copied nor written.
    fs::remove_dir(&spooled.spool).unwrap();
    let secret = spooled.dir.path().join("secret");
    fs::write(&secret, "canary-4711\n").unwrap();
    std::os::unix::fs::symlink(&secret, &spooled.spool).unwrap();
    let error = spooled.try_note("ls 4").unwrap_err().to_string();
    assert!(error.contains("it is a symbolic link"), "{error}");
    assert!(Store::open(&spooled.path).is_err());
    assert_eq!((fs::read_to_string(&secret).unwrap().as_str(), spooled.kept().len()), ("canary-4711\n", 0));
}

#[test]
fn a_spool_does_not_grow_for_ever() {
    let spooled = Spooled::with(1);
    let (mut longest, mut renewed) = (0, 0);
    let mut before = 0;
    for number in 2..=200 {
        spooled.note(&format!("ls {number}"));
        let length = fs::metadata(&spooled.spool).unwrap().len();
        renewed += u32::from(length < before);
        before = length;
        longest = longest.max(length);
    }
    assert!((32_000..80_000).contains(&longest), "{longest}");
    assert!((1..=10).contains(&renewed), "{renewed}");
    assert_eq!(spooled.opened(), (numbered(1..=200), vec![]));
}

#[test]
fn nothing_is_lost_while_others_open_the_trace() {
    // contract: P12
    let spooled = Spooled::with(0);
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let opens = scope.spawn(|| {
            let mut opened = 0;
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                drop(Store::open(&spooled.path).unwrap());
                opened += 1;
            }
            opened
        });
        let writers: Vec<_> = (0..4)
            .map(|writer| {
                let spooled = &spooled;
                scope.spawn(move || (0..40).for_each(|n| spooled.note(&format!("ls {}", writer * 40 + n))))
            })
            .collect();
        for writer in writers {
            writer.join().unwrap();
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(opens.join().unwrap() > 0);
    });
    let (mut commands, faults) = spooled.opened();
    commands.sort_by_key(|command| command.trim_start_matches("ls ").parse::<usize>().unwrap());
    assert_eq!((commands, faults), (numbered(0..160), vec![]));
}

#[test]
fn a_trace_that_is_reached_by_a_link_has_no_second_spool() {
    // contract: P12
    let spooled = Spooled::with(2);
    let link = spooled.dir.path().join("link.db");
    std::os::unix::fs::symlink(&spooled.path, &link).unwrap();
    let decided = [decide("ls 3")];
    Store::note_decisions(&link, "hook", None, &spooled.session, &decided, "answered").unwrap();
    assert!(!spooled.dir.path().join("link.db-spool").exists());
    assert_eq!(spooled.opened().0.len(), 3);
}

#[test]
fn secrets_are_not_written() {
    // contract: S19, P12
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("trace.db");
    let token = format!("{}{}", "ghp_", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4");
    let store = Store::open(&path).unwrap().with_redactor(Redactor::new([("OPENAI_API_KEY", "canary-4711")]));
    record(&store, &["echo canary-4711", &format!("npm login {token}"), &format!("rm {token} canary-4711")]);
    drop(store);
    let bytes: Vec<u8> =
        fs::read_dir(dir.path()).unwrap().flat_map(|file| fs::read(file.unwrap().path()).unwrap()).collect();
    let text = String::from_utf8_lossy(&bytes);
    assert!(!text.contains("canary-4711") && !text.contains(&token));
    assert!(text.contains("[redacted: OPENAI_API_KEY]") && text.contains("[redacted: GitHub token]"));
}

#[test]
fn a_trace_of_version_1_is_brought_up_to_date() {
    // contract: P12
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("trace.db");
    let first = Connection::open(&path).unwrap();
    first.execute_batch(MIGRATIONS[0]).unwrap();
    first.pragma_update(None, "application_id", APPLICATION_ID).unwrap();
    first.pragma_update(None, "user_version", 1).unwrap();
    first
        .execute_batch(
            "INSERT INTO runs (started_at, kind, root, sandbox, approval)
             VALUES ('2026-01-01T00:00:00Z', 'command', '/p', 'read_only', 'never')",
        )
        .unwrap();
    // The link as version 1 wrote it.
    let json = r#"{"approval":"never","ended_at":null,"goal":null,"id":1,"kind":"command","outcome":null,"root":"/p","sandbox":"read_only","started_at":"2026-01-01T00:00:00Z"}"#;
    let content = hex(Sha256::digest(json));
    let hash = link_hash(GENESIS, "runs", 1, &content);
    first
        .execute("INSERT INTO chain (tbl, row_id, content, hash) VALUES ('runs', 1, ?1, ?2)", (content, hash))
        .unwrap();
    drop(first);
    let store = Store::open(&path).unwrap();
    assert_eq!(faults(&store), <[&str; 0]>::default());
    assert_eq!(store.verify().unwrap().links, 1);
    record(&store, &["ls"]);
    drop(store);
    let store = Store::open(&path).unwrap();
    assert_eq!(faults(&store), <[&str; 0]>::default());
    let version: i64 = store.connection().pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    assert_eq!(version, VERSION);
}

#[test]
fn a_file_that_is_no_trace_is_a_clear_error() {
    // contract: P12
    let dir = tempfile::tempdir().unwrap();
    let open = |name: &str| Store::open(dir.path().join(name)).unwrap_err().to_string();
    fs::write(dir.path().join("text"), "these are notes, and no database; \n".repeat(100)).unwrap();
    assert!(open("text").contains("not an SQLite database"), "{}", open("text"));

    let foreign = Connection::open(dir.path().join("foreign")).unwrap();
    foreign.execute_batch("CREATE TABLE t (a); INSERT INTO t VALUES (1)").unwrap();
    assert!(open("foreign").contains("another program's database"), "{}", open("foreign"));
    let rows: i64 = foreign.query_row("SELECT count(*) FROM t", [], |row| row.get(0)).unwrap();
    assert_eq!(rows, 1, "it is left alone");

    drop(Store::open(dir.path().join("newer")).unwrap());
    let newer = Connection::open(dir.path().join("newer")).unwrap();
    newer.pragma_update(None, "user_version", 99).unwrap();
    drop(newer);
    assert!(open("newer").contains("newer version") && open("newer").contains("update"), "{}", open("newer"));

    // Damage in the middle: found when it is read or checked, never taken for a good row.
    let path = dir.path().join("damaged");
    let store = Store::open(&path).unwrap();
    for _ in 0..40 {
        record(&store, &["ls", "rm x"]);
    }
    drop(store);
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    for byte in bytes.iter_mut().skip(middle).take(12_000) {
        *byte = 0xA5;
    }
    fs::write(&path, bytes).unwrap();
    match Store::open(&path).and_then(|store| store.verify()) {
        Ok(verified) => assert!(!verified.faults.is_empty()),
        Err(error) => assert!(error.to_string().contains("damaged"), "{error}"),
    }

    fs::create_dir(dir.path().join("directory")).unwrap();
    assert!(open("directory").contains("it is a directory"), "{}", open("directory"));
    fs::write(dir.path().join("file"), "").unwrap();
    assert!(open("file/trace.db").contains("--trace"), "{}", open("file/trace.db"));
}

#[test]
fn a_locked_trace_says_who_is_to_blame() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("trace.db");
    let store = Store::open(&path).unwrap();
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    store.connection().busy_timeout(Duration::from_millis(50)).unwrap();
    let error = store.begin(&INFO).unwrap_err().to_string();
    assert!(error.contains("another process holds it locked"), "{error}");
    other.execute_batch("ROLLBACK").unwrap();
    store.begin(&INFO).unwrap();
}

#[test]
fn a_new_trace_is_for_its_owner_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("deep/er/trace.db");
    drop(Store::open(&path).unwrap());
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}
