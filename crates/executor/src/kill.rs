//! Ending a tree of processes that no namespace holds together.
//!
//! A control group ends everything in it at once. Without one, this process adopts orphans, so that whatever the command
//! started descends from it for as long as it lives. What belongs to the command among its descendants is told by a
//! [`Mark`]. They are stopped first, so that none can fork on while the others are being looked for, then killed, until
//! none is left.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Resource, Signal, WaitOptions, getrlimit, kill_process, waitpid};
use tokio::time::sleep;

use crate::cgroup::Leaf;
use crate::process;

/// The variable that marks every process of a run.
const VARIABLE: &str = "CMDGATE_RUN";

/// What every process of one run inherits, whatever it does: a resource limit that nothing else has, and a variable.
///
/// A variable alone is lost with `env -i`, and cannot be read in a program that gains privileges. A limit stays, can be
/// read by anybody and still in a process that has ended, and only root could raise it. The one used bounds nothing:
/// Linux has not looked at `RLIMIT_RSS` since 2.4.30 (getrlimit(2)).
#[derive(Debug, Clone)]
pub(crate) struct Mark {
    text: String,
    limit: u64,
    /// How many values below belong to runs inside this run, which take theirs from the limit that they find.
    nested: u64,
}

/// What the marks of all runs of this process have in common, and those of no other process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Family {
    /// In the variable.
    name: u64,
    /// The leading digits of the limit.
    prefix: u64,
}

/// The limit of a mark, in decimal: eight digits of its family, five that count runs, six that count runs inside a run.
const NESTED: u64 = 1_000_000;
const RUNS: u64 = 100_000;
/// Eight digits, so that the whole stays below 2^63, which some programs take for negative.
const PREFIXES: std::ops::Range<u64> = 10_000_000..90_000_000;

impl Family {
    fn name() -> u64 {
        static NAME: OnceLock<u64> = OnceLock::new();
        // Seeded by the system, anew in each process.
        *NAME.get_or_init(|| RandomState::new().build_hasher().finish())
    }

    /// The family of this process; `None` when it is part of another run, or has otherwise found a limit that it
    /// could not raise.
    pub(crate) fn own() -> Option<Self> {
        static UNLIMITED: OnceLock<bool> = OnceLock::new();
        let name = Self::name();
        let prefix = PREFIXES.start + name % (PREFIXES.end - PREFIXES.start);
        UNLIMITED.get_or_init(|| getrlimit(Resource::Rss).maximum.is_none()).then_some(Self { name, prefix })
    }

    /// Whether the limit that this process has found is the mark of a run around it.
    pub(crate) fn is_inside_a_run() -> bool {
        let limit = getrlimit(Resource::Rss).maximum;
        limit.is_some_and(|limit| PREFIXES.contains(&(limit / (RUNS * NESTED))))
    }

    /// One that no process has.
    #[cfg(test)]
    pub(crate) fn invented() -> Self {
        let name = RandomState::new().build_hasher().finish();
        Self { name, prefix: PREFIXES.start + name % (PREFIXES.end - PREFIXES.start) }
    }

    const fn highest(self) -> u64 {
        (self.prefix + 1) * RUNS * NESTED - 1
    }

    /// The mark of a run that is ended by its namespace: one for all of them.
    pub(crate) const fn resource(self) -> (Resource, u64) {
        (Resource::Rss, self.highest())
    }

    /// What grep(1) finds in the limits (proc_pid_limits(5)) of every process of this family.
    pub(crate) fn limits(self) -> String {
        format!("^Max resident set  *{}[0-9]\\{{11\\}} ", self.prefix)
    }

    /// How the entry begins that every process of this family has in its environment, unless it has cleaned that.
    pub(crate) fn variable(self) -> String {
        format!("{VARIABLE}={:016x}-", self.name)
    }
}

impl Mark {
    /// A mark that no other run of this process has.
    pub(crate) fn new() -> Self {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        let count = COUNTER.fetch_add(1, Ordering::Relaxed);
        let text = format!("{:016x}-{count}", Family::name());
        let (highest, nested) = match (Family::own(), getrlimit(Resource::Rss).maximum) {
            (Some(family), None) => (family.highest(), NESTED),
            (None, None) => (u64::MAX >> 1, NESTED),
            (_, Some(limit)) => (limit, 1),
        };
        // Runs that are a hundred thousand apart do not meet.
        let place = count % (RUNS - 1) + 1;
        Self { text, limit: highest.saturating_sub(place.saturating_mul(nested)), nested }
    }

    /// The variable to set.
    pub(crate) fn variable(&self) -> (&'static str, &str) {
        (VARIABLE, &self.text)
    }

    /// The limit to set.
    pub(crate) const fn resource(&self) -> (Resource, u64) {
        (Resource::Rss, self.limit)
    }

    fn is_on(&self, pid: i32) -> bool {
        resident_limit(pid).is_some_and(|limit| limit <= self.limit && self.limit - limit < self.nested)
            || variable_is(pid, &self.text)
    }
}

/// The hard limit on resident memory (proc_pid_limits(5)).
fn resident_limit(pid: i32) -> Option<u64> {
    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max resident set"))?;
    line.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Whether a process started with this value of the variable (proc_pid_environ(5)).
fn variable_is(pid: i32, text: &str) -> bool {
    let Ok(environment) = fs::read(format!("/proc/{pid}/environ")) else { return false };
    environment.split(|&byte| byte == 0).any(|entry| {
        entry
            .strip_prefix(VARIABLE.as_bytes())
            .and_then(|rest| rest.strip_prefix(b"="))
            .is_some_and(|value| value == text.as_bytes())
    })
}

/// Everything that one unconfined command started.
#[derive(Debug)]
pub(crate) struct Tree {
    leader: Option<i32>,
    /// The leader has been waited for, and its number may be given to another process.
    leader_gone: bool,
    mark: Mark,
    leaf: Leaf,
    over: bool,
}

#[derive(Debug, Clone, Copy)]
struct Process {
    parent: i32,
    group: i32,
    session: i32,
    /// All its threads have ended.
    ended: bool,
}

impl Tree {
    /// A tree whose processes carry a mark.
    pub(crate) fn new(mark: Mark, leaf: Leaf) -> Self {
        Self { leader: None, leader_gone: false, mark, leaf, over: false }
    }

    /// Says which process was started.
    pub(crate) fn started(&mut self, pid: u32) {
        self.leader = i32::try_from(pid).ok();
    }

    /// Says that the process that was started has ended and been waited for.
    pub(crate) fn leader_waited_for(&mut self) {
        self.leader_gone = true;
    }

    /// Ends everything; returns once nothing is left.
    pub(crate) async fn end(&mut self) {
        let mut pause = Duration::from_millis(1);
        while !self.pass() {
            sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(50));
        }
        self.over = true;
    }

    /// One round; true when nothing was found alive.
    fn pass(&self) -> bool {
        if self.leaf.kills() {
            let empty = self.leaf.kill_all();
            let strangers = self.strangers().unwrap_or_default();
            reap_orphans(&strangers, &|orphan| self.leaf.holds(orphan));
            return empty;
        }
        if self.nothing_left() {
            return true;
        }
        let mut stopped = BTreeSet::new();
        // Stop until a round finds nobody new: what is stopped cannot fork.
        loop {
            let found = self.members();
            let new: Vec<i32> = found.iter().copied().filter(|pid| !stopped.contains(pid)).collect();
            if new.is_empty() {
                break;
            }
            for pid in new {
                signal(pid, Signal::STOP);
                stopped.insert(pid);
            }
        }
        for &pid in &stopped {
            signal(pid, Signal::KILL);
        }
        stopped.is_empty()
    }

    /// Whether it can be seen without looking at every process that nothing is left.
    ///
    /// The process that was started has ended, and this process adopts orphans. So whatever is left descends from a
    /// child of this process that belongs to the tree and lives: a process that has ended has no children.
    fn nothing_left(&self) -> bool {
        if let Some(leader) = self.leader
            && !self.leader_gone
            && !process::has_ended(leader)
        {
            return false;
        }
        if process::childless() {
            return true;
        }
        let Some(children) = self.strangers() else { return false };
        if children.is_empty() {
            // Whatever lives would descend from one of them, and one that ends stays among them until it is taken out
            // below.
            return true;
        }
        if children.iter().any(|&child| !process::has_ended(child) && self.mark.is_on(child)) {
            return false;
        }
        // What a child left behind when it ended, after the list was read, has come to the end of the list.
        let Some(again) = self.strangers() else { return false };
        if !again.is_subset(&children) {
            return false;
        }
        reap_orphans(&again, &|orphan| self.mark.is_on(orphan));
        true
    }

    /// The children of this process that it has not started through this crate: orphans of this tree and of others, and
    /// what the program around has started. `None` where they cannot be listed.
    fn strangers(&self) -> Option<BTreeSet<i32>> {
        let leader = self.leader.filter(|_| !self.leader_gone);
        let mut children = process::children_from_elsewhere()?;
        children.retain(|&child| Some(child) != leader);
        Some(children)
    }

    /// The living processes of the tree.
    fn members(&self) -> BTreeSet<i32> {
        let Some(leader) = self.leader else { return BTreeSet::new() };
        let table = table();
        let own = i32::try_from(std::process::id()).unwrap_or(0);
        let belongs = |pid: i32, process: &Process| {
            let named =
                !self.leader_gone && (pid == leader || process.session == leader || process.group == leader);
            named || (may_descend(pid, own, &table) && self.mark.is_on(pid))
        };
        let mut members: BTreeSet<i32> = table
            .iter()
            .filter(|&(&pid, process)| pid != own && belongs(pid, process))
            .map(|(&pid, _)| pid)
            .collect();
        loop {
            let children: Vec<i32> = table
                .iter()
                .filter(|(pid, process)| members.contains(&process.parent) && !members.contains(pid))
                .map(|(&pid, _)| pid)
                .collect();
            if children.is_empty() {
                break;
            }
            members.extend(children);
        }
        for (&pid, process) in &table {
            if process.ended && process.parent == own && Some(pid) != self.leader && members.contains(&pid) {
                reap(pid);
            }
        }
        members.retain(|pid| table.get(pid).is_some_and(|process| !process.ended));
        members
    }
}

/// Takes those children out of the process table that have ended and belong to a tree.
fn reap_orphans(strangers: &BTreeSet<i32>, ours: &dyn Fn(i32) -> bool) {
    /// Children that have ended and belong to no run: whoever started them has not waited for them yet. They are not
    /// looked at each time. Should a number be given anew, the worst is an entry that stays in the process table.
    static FOREIGN: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());
    let mut foreign = FOREIGN.lock().unwrap_or_else(PoisonError::into_inner);
    foreign.retain(|known| strangers.contains(known));
    for &child in strangers {
        if foreign.contains(&child) || !process::has_ended(child) {
            continue;
        }
        if ours(child) {
            reap(child);
        } else if resident_limit(child).is_none() {
            foreign.insert(child);
        }
    }
}

/// Whether a process descends from another, or may: its ancestors can have changed while the table was being read.
fn may_descend(pid: i32, ancestor: i32, table: &BTreeMap<i32, Process>) -> bool {
    let mut at = pid;
    for _ in 0..table.len() {
        match table.get(&at) {
            // What has no parent here has been started from outside this PID namespace, or is its first process.
            Some(process) if process.parent == 0 => return false,
            Some(process) if process.parent == ancestor => return true,
            Some(process) => at = process.parent,
            None => return true,
        }
    }
    true
}

impl Drop for Tree {
    fn drop(&mut self) {
        if self.over || self.leader.is_none() {
            return;
        }
        if self.pass() {
            return;
        }
        let tree = Self {
            leader: self.leader,
            leader_gone: self.leader_gone,
            mark: self.mark.clone(),
            leaf: std::mem::take(&mut self.leaf),
            // The clone must not start over when it is dropped in turn.
            over: true,
        };
        process::end_later(move || {
            for _ in 0..100 {
                if tree.pass() {
                    return;
                }
                std::thread::sleep(Duration::from_millis(50));
            }
        });
    }
}

fn signal(pid: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid) {
        // Gone already is as good.
        let _ = kill_process(pid, signal);
    }
}

fn reap(pid: i32) {
    if let Some(pid) = Pid::from_raw(pid) {
        // Not a child of this process: somebody else's to reap.
        let _ = waitpid(Some(pid), WaitOptions::NOHANG);
    }
}

/// Every process, by number (proc_pid_stat(5): state, parent, group and session follow the name in brackets; the number
/// of threads is the fourteenth after these).
fn table() -> BTreeMap<i32, Process> {
    let Ok(listing) = fs::read_dir("/proc") else { return BTreeMap::new() };
    listing
        .filter_map(Result::ok)
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
        .filter_map(|pid| {
            let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
            let after_name = stat.iter().rposition(|&byte| byte == b')')?;
            let text = std::str::from_utf8(stat.get(after_name + 1..)?).ok()?;
            let mut fields = text.split_ascii_whitespace();
            let first_thread_ended = matches!(fields.next()?, "Z" | "X");
            let mut next = || fields.next()?.parse().ok();
            let (parent, group, session) = (next()?, next()?, next()?);
            let threads: i32 = fields.nth(13)?.parse().ok()?;
            Some((pid, Process { parent, group, session, ended: first_thread_ended && threads <= 1 }))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mark_of_a_family_is_found_and_no_other() {
        let family = Family { name: 7, prefix: 12_345_678 };
        let next = Family { prefix: 12_345_679, ..family };
        let pattern = family.limits().replace("\\{", "{").replace("\\}", "}");
        let pattern = regex::Regex::new(&format!("(?m){pattern}")).unwrap();
        let found = |limit: u64| {
            let line = |name, limit: &str| format!("{name:<25} {limit:<20} {limit:<20} bytes     \n");
            let limits = line("Max core file size", "0") + &line("Max resident set", &limit.to_string());
            pattern.is_match(&(limits + &line("Max processes", "unlimited")))
        };
        for place in [0, 1, RUNS - 1] {
            for nested in [0, 1, NESTED - 1] {
                assert!(found(family.highest() - place * NESTED - nested));
                assert!(!found(next.highest() - place * NESTED - nested));
            }
        }
        assert!(!found(family.highest() + 1) && !found(family.highest() / 10) && !found(u64::MAX));
        // Whatever the family, the highest limit is a positive number for those who take it for a signed one.
        let last = Family { prefix: PREFIXES.end - 1, ..family };
        assert!(i64::try_from(last.highest()).is_ok());
    }
}
