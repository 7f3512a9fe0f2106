//! Putting limits in force, and saying which of them hold.

use std::io;
use std::os::fd::OwnedFd;

use rustix::process::{Pid, Resource, Rlimit, prlimit};

use crate::cgroup::{Leaf, Wanted};
use crate::limits::{Holds, LimitKind, LimitStatus, Limits};

/// Limits ready to be put in force for one run.
#[derive(Debug)]
pub(crate) struct Bounds {
    pub(crate) leaf: Leaf,
    /// Where the process enters its control groups.
    pub(crate) entries: Vec<OwnedFd>,
    pub(crate) resources: Vec<(Resource, u64)>,
    pub(crate) statuses: Vec<LimitStatus>,
}

/// How a command is run, as far as limits depend on it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Situation {
    pub(crate) root: bool,
    pub(crate) sandboxed: bool,
    /// Whether mounts in memory are bounded.
    pub(crate) sized_mounts: bool,
}

/// Processes that the sandbox itself adds to a control group: bubblewrap's monitor and its first process.
const OWN_PROCESSES: u64 = 2;

impl Bounds {
    pub(crate) fn prepare(limits: &Limits, situation: Situation) -> Self {
        // For root the kernel does not enforce RLIMIT_NPROC, and without a user namespace the limit would count
        // everything that the user runs.
        let group_for_processes = situation.root || !situation.sandboxed;
        let group = limits.group || limits.required || limits.memory.is_some();
        let wanted = if group {
            Wanted {
                processes: limits
                    .processes
                    .filter(|_| group_for_processes)
                    .map(|limit| limit.saturating_add(OWN_PROCESSES)),
                memory: limits.memory,
                kill: !situation.sandboxed,
            }
        } else {
            Wanted::default()
        };
        let (leaf, entries) = Leaf::create(wanted);
        let mut resources = vec![(Resource::Core, 0)];
        let mut statuses =
            vec![LimitStatus { kind: LimitKind::CoreFiles, value: 0, holds: Holds::ResourceLimit }];
        let mut status = |kind, value, holds| statuses.push(LimitStatus { kind, value, holds });

        if let Some(limit) = limits.processes {
            let holds = if leaf.bounds_processes {
                Holds::ControlGroup
            } else if group_for_processes {
                let who = if situation.root { "root" } else { "a command without a sandbox" };
                let why = if group { "and none can be made here" } else { "and `group` is not set" };
                Holds::Unenforced(format!("for {who} only a control group bounds processes, {why}"))
            } else {
                resources.push((Resource::Nproc, limit));
                Holds::ResourceLimit
            };
            status(LimitKind::Processes, limit, holds);
        }
        if let Some(limit) = limits.memory {
            let holds = if leaf.bounds_memory {
                Holds::ControlGroup
            } else {
                Holds::Unenforced("no control group with the memory controller can be made here".to_owned())
            };
            status(LimitKind::Memory, limit, holds);
        }
        for (kind, resource, limit) in [
            (LimitKind::OpenFiles, Resource::Nofile, limits.open_files),
            (LimitKind::FileSize, Resource::Fsize, limits.file_size),
            (LimitKind::Data, Resource::Data, limits.data),
            (LimitKind::CpuSeconds, Resource::Cpu, limits.cpu_seconds),
        ] {
            if let Some(limit) = limit {
                resources.push((resource, limit));
                status(kind, limit, Holds::ResourceLimit);
            }
        }
        if situation.sandboxed {
            let holds = if situation.sized_mounts {
                Holds::Mount
            } else {
                Holds::Unenforced("this bubblewrap cannot bound a file system in memory".to_owned())
            };
            status(LimitKind::SharedMemory, limits.shared_memory, holds);
        }
        Self { leaf, entries, resources, statuses }
    }

    /// The first bound that does not hold.
    pub(crate) fn unenforced(&self) -> Option<(&'static str, &str)> {
        self.statuses.iter().find_map(|status| match &status.holds {
            Holds::Unenforced(reason) => Some((status.kind.name(), reason.as_str())),
            Holds::ControlGroup | Holds::ResourceLimit | Holds::Mount => None,
        })
    }
}

/// Sets resource limits on a process that waits; what it starts inherits them.
pub(crate) fn set_limits(pid: i32, resources: &[(Resource, u64)]) -> io::Result<()> {
    let pid = Pid::from_raw(pid);
    for &(resource, limit) in resources {
        prlimit(pid, resource, lowered(resource, limit))?;
    }
    Ok(())
}

/// The limit, or what already holds when that is lower.
pub(crate) fn lowered(resource: Resource, limit: u64) -> Rlimit {
    let hard = rustix::process::getrlimit(resource).maximum;
    let limit = hard.map_or(limit, |hard| hard.min(limit));
    Rlimit { current: Some(limit), maximum: Some(limit) }
}

/// Makes the kernel prefer this process when memory runs out. Best effort: the file may belong to root.
pub(crate) fn prefer_for_oom(pid: i32) {
    let _ = std::fs::write(format!("/proc/{pid}/oom_score_adj"), "900");
}
