//! Ending a tree of processes that no namespace holds together.
//!
//! A control group ends everything in it at once. Without one, descendants are found through `/proc`: by
//! parent, by session, by process group, and by a mark in the environment they inherited, which still finds
//! those that called `setsid` and forked away. They are stopped first, so that none can fork on while the
//! others are being looked for, then killed, until none is left.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use tokio::time::sleep;

use crate::cgroup::Leaf;
use crate::process;

/// The variable that marks every process of a run.
pub(crate) const MARK: &str = "CMDGATE_RUN";

/// Everything that one unconfined command started.
#[derive(Debug)]
pub(crate) struct Tree {
    leader: Option<i32>,
    mark: String,
    leaf: Leaf,
    over: bool,
}

#[derive(Debug, Clone, Copy)]
struct Process {
    parent: i32,
    group: i32,
    session: i32,
    zombie: bool,
}

impl Tree {
    /// A tree whose processes carry `mark` as the value of [`MARK`].
    pub(crate) fn new(mark: String, leaf: Leaf) -> Self {
        Self { leader: None, mark, leaf, over: false }
    }

    /// Says which process was started.
    pub(crate) fn started(&mut self, pid: u32) {
        self.leader = i32::try_from(pid).ok();
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
            self.reap_orphans();
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

    /// Whether it can be seen at once that nothing is left: the process that was started has ended, so its
    /// children have become ours, and there is none that is not accounted for.
    fn nothing_left(&self) -> bool {
        let leader = self.leader;
        leader.is_none_or(|leader| state(leader).is_none_or(|state| state == 'Z'))
            && process::own_children().is_some_and(|children| {
                children.iter().all(|&child| Some(child) == leader || process::started_here(child))
            })
    }

    /// Takes ended processes of the group out of the process table, where they were handed to this process.
    fn reap_orphans(&self) {
        // The group of a process can still be read when it has ended.
        for child in process::own_children().unwrap_or_default() {
            if !process::started_here(child) && state(child) == Some('Z') && self.leaf.holds(child) {
                reap(child);
            }
        }
    }

    /// The living processes of the tree. Orphans that were handed to this process and have ended are reaped.
    fn members(&self) -> BTreeSet<i32> {
        let Some(leader) = self.leader else { return BTreeSet::new() };
        let table = table();
        let own = i32::try_from(std::process::id()).unwrap_or(0);
        let mut members: BTreeSet<i32> = table
            .iter()
            .filter(|&(&pid, process)| {
                pid == leader
                    || process.session == leader
                    || process.group == leader
                    || marked(pid, &self.mark)
            })
            .map(|(&pid, _)| pid)
            .collect();
        members.remove(&own);
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
            if process.zombie && process.parent == own && pid != leader && members.contains(&pid) {
                reap(pid);
            }
        }
        members.retain(|pid| table.get(pid).is_some_and(|process| !process.zombie));
        members
    }
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
            mark: std::mem::take(&mut self.mark),
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

/// The state of a process (proc_pid_stat(5)).
fn state(pid: i32) -> Option<char> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let after_name = stat.iter().rposition(|&byte| byte == b')')?;
    stat.get(after_name + 2).map(|&byte| char::from(byte))
}

fn marked(pid: i32, mark: &str) -> bool {
    let Ok(environment) = fs::read(format!("/proc/{pid}/environ")) else { return false };
    environment.split(|&byte| byte == 0).any(|entry| {
        entry
            .strip_prefix(MARK.as_bytes())
            .and_then(|rest| rest.strip_prefix(b"="))
            .is_some_and(|value| value == mark.as_bytes())
    })
}

/// Every process, by number (proc_pid_stat(5): state, parent, group and session follow the name in brackets).
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
            let zombie = matches!(fields.next()?, "Z" | "X");
            let mut next = || fields.next()?.parse().ok();
            Some((pid, Process { parent: next()?, group: next()?, session: next()?, zombie }))
        })
        .collect()
}
