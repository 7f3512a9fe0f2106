//! Control groups: bounds for a whole tree, and ending it at once. Used where one can be made, never required.
//!
//! Both generations are known. On the second, a group that holds processes cannot hand controllers to its
//! children, so the leaf is made below the first of this process's own group and its parent that hands them
//! down (cgroup-v2.rst, "No Internal Process Constraint").

use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What a leaf is to do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) processes: Option<u64>,
    pub(crate) memory: Option<u64>,
    pub(crate) kill: bool,
}

/// One run's control groups. Removed when dropped.
#[derive(Debug, Default)]
pub(crate) struct Leaf {
    directories: Vec<PathBuf>,
    /// The one whose `cgroup.kill` ends everything.
    unified: Option<PathBuf>,
    pub(crate) bounds_processes: bool,
    pub(crate) bounds_memory: bool,
}

/// Where leaves can be made.
#[derive(Debug, Default)]
struct Places {
    unified: Vec<PathBuf>,
    pids: Option<PathBuf>,
    memory: Option<PathBuf>,
}

impl Leaf {
    /// Makes what can be made of what is wanted, with the descriptors through which a process enters.
    pub(crate) fn create(wanted: Wanted) -> (Self, Vec<OwnedFd>) {
        let mut leaf = Self::default();
        let mut entries = Vec::new();
        if wanted == Wanted::default() {
            return (leaf, entries);
        }
        let places = places();
        let name = format!("cmdgate-{}-{}", std::process::id(), next());
        leaf.unified(places, &name, wanted, &mut entries);
        if let (Some(limit), Some(place), false) = (wanted.processes, &places.pids, leaf.bounds_processes) {
            leaf.bounds_processes =
                leaf.first_generation(&place.join(&name), &[("pids.max", limit)], &mut entries);
        }
        if let (Some(limit), Some(place), false) = (wanted.memory, &places.memory, leaf.bounds_memory) {
            let directory = place.join(&name);
            leaf.bounds_memory =
                leaf.first_generation(&directory, &[("memory.limit_in_bytes", limit)], &mut entries);
            // Only there when swap is accounted.
            let _ = fs::write(directory.join("memory.memsw.limit_in_bytes"), limit.to_string());
        }
        (leaf, entries)
    }

    fn unified(&mut self, places: &Places, name: &str, wanted: Wanted, entries: &mut Vec<OwnedFd>) {
        let controllers: Vec<&str> = [wanted.processes.map(|_| "pids"), wanted.memory.map(|_| "memory")]
            .into_iter()
            .flatten()
            .collect();
        let hands_down = |place: &Path| {
            let enabled = fs::read_to_string(place.join("cgroup.subtree_control")).unwrap_or_default();
            controllers.iter().all(|controller| enabled.split_whitespace().any(|known| known == *controller))
        };
        let mut candidates: Vec<&PathBuf> = places.unified.iter().filter(|place| hands_down(place)).collect();
        if wanted.kill {
            candidates.extend(&places.unified);
        }
        for place in candidates {
            let directory = place.join(name);
            if fs::create_dir(&directory).is_err() {
                continue;
            }
            let Ok(entry) = File::options().write(true).open(directory.join("cgroup.procs")) else {
                remove(&directory);
                continue;
            };
            let set = |file: &str, value: u64| fs::write(directory.join(file), value.to_string()).is_ok();
            if let Some(limit) = wanted.processes {
                self.bounds_processes = set("pids.max", limit);
            }
            if let Some(limit) = wanted.memory {
                self.bounds_memory = set("memory.max", limit);
                // Each is there only with its own kernel option.
                let _ = set("memory.swap.max", 0);
                let _ = set("memory.oom.group", 1);
            }
            if directory.join("cgroup.kill").exists() {
                self.unified = Some(directory.clone());
            }
            entries.push(entry.into());
            self.directories.push(directory);
            return;
        }
    }

    fn first_generation(
        &mut self,
        directory: &Path,
        settings: &[(&str, u64)],
        entries: &mut Vec<OwnedFd>,
    ) -> bool {
        if fs::create_dir(directory).is_err() {
            return false;
        }
        self.directories.push(directory.to_owned());
        let set =
            settings.iter().all(|(file, value)| fs::write(directory.join(file), value.to_string()).is_ok());
        match File::options().write(true).open(directory.join("cgroup.procs")) {
            Ok(entry) if set => {
                entries.push(entry.into());
                true
            }
            Ok(_) | Err(_) => false,
        }
    }

    /// Whether [`Leaf::kill_all`] can be used.
    pub(crate) const fn kills(&self) -> bool {
        self.unified.is_some()
    }

    /// Whether a process is, or was when it ended, in the group (cgroups(7), `/proc/PID/cgroup`).
    pub(crate) fn holds(&self, pid: i32) -> bool {
        let Some(name) = self.unified.as_deref().and_then(Path::file_name) else { return false };
        fs::read_to_string(format!("/proc/{pid}/cgroup")).is_ok_and(|groups| {
            groups.lines().any(|line| {
                let path = line.strip_prefix("0::").unwrap_or_default();
                Path::new(path.strip_suffix(" (deleted)").unwrap_or(path)).file_name() == Some(name)
            })
        })
    }

    /// Ends everything in the group; true once it is empty.
    pub(crate) fn kill_all(&self) -> bool {
        let Some(directory) = &self.unified else { return false };
        let empty = || {
            fs::read_to_string(directory.join("cgroup.events"))
                .is_ok_and(|events| events.lines().any(|line| line == "populated 0"))
        };
        // The usual case: the command has ended and left nothing.
        empty() || {
            // A failure shows in the group not becoming empty.
            let _ = fs::write(directory.join("cgroup.kill"), "1");
            empty()
        }
    }
}

impl Drop for Leaf {
    fn drop(&mut self) {
        let left: Vec<PathBuf> =
            self.directories.drain(..).filter(|directory| fs::remove_dir(directory).is_err()).collect();
        if !left.is_empty() {
            // A group stays busy until the last of its processes has been reaped.
            crate::process::tidy_later(move || left.iter().for_each(|directory| remove(directory)));
        }
    }
}

fn remove(directory: &Path) {
    for attempt in 0..40 {
        match fs::remove_dir(directory) {
            Ok(()) => return,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            Err(_) => std::thread::sleep(Duration::from_millis(if attempt < 10 { 2 } else { 50 })),
        }
    }
}

fn next() -> u64 {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    COUNTER.fetch_add(1, Ordering::Relaxed)
}

fn places() -> &'static Places {
    static PLACES: OnceLock<Places> = OnceLock::new();
    PLACES.get_or_init(|| {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let places = find_places(&mounts, &groups);
        places.unified.iter().chain(&places.pids).chain(&places.memory).for_each(|place| sweep(place));
        places
    })
}

/// Removes the groups of processes that were killed before they could.
fn sweep(place: &Path) {
    for entry in fs::read_dir(place).into_iter().flatten().filter_map(Result::ok) {
        let name = entry.file_name();
        let owner = name
            .to_str()
            .and_then(|name| name.strip_prefix("cmdgate-")?.split('-').next()?.parse::<u32>().ok());
        if owner.is_some_and(|owner| !Path::new("/proc").join(owner.to_string()).exists()) {
            // Busy or another user's: not ours to remove.
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// Reads proc_pid_mountinfo(5) and cgroups(7)' `/proc/self/cgroup`.
fn find_places(mounts: &str, groups: &str) -> Places {
    let mut places = Places::default();
    for mount in mounts.lines() {
        let Some((left, right)) = mount.split_once(" - ") else { continue };
        let mut left = left.split(' ').skip(3);
        let (Some(root), Some(point)) = (left.next(), left.next()) else { continue };
        let mut right = right.split(' ');
        let (kind, options) = (right.next().unwrap_or_default(), right.nth(1).unwrap_or_default());
        let own = |controllers: &str| {
            groups.lines().find_map(|line| {
                let (_, rest) = line.split_once(':')?;
                let (names, path) = rest.split_once(':')?;
                if !names.split(',').any(|name| name == controllers) {
                    return None;
                }
                // A bind-mounted hierarchy (a container) shows only what lies below its own root.
                let below = path.strip_prefix(root.trim_end_matches('/')).unwrap_or(path);
                Some(Path::new(point).join(below.trim_start_matches('/')))
            })
        };
        match kind {
            "cgroup2" => {
                if let Some(own) = own("") {
                    let parent = own.parent().filter(|parent| parent.starts_with(point)).map(Path::to_owned);
                    places.unified = std::iter::once(own).chain(parent).collect();
                }
            }
            "cgroup" => {
                let has = |name: &str| options.split(',').any(|option| option == name);
                if has("pids") {
                    places.pids = own("pids");
                }
                if has("memory") {
                    places.memory = own("memory");
                }
            }
            _ => {}
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hybrid_hierarchy_is_read() {
        let mounts = "30 25 0:26 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n\
            31 30 0:27 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids\n\
            32 30 0:28 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n\
            33 30 0:29 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";
        let groups = "8:pids:/\n4:memory:/a/b\n0::/\n";
        let places = find_places(mounts, groups);
        assert_eq!(places.pids, Some(PathBuf::from("/sys/fs/cgroup/pids")));
        assert_eq!(places.memory, Some(PathBuf::from("/sys/fs/cgroup/memory/a/b")));
        assert_eq!(places.unified, [PathBuf::from("/sys/fs/cgroup/unified")]);
    }

    #[test]
    fn a_user_session_and_a_container_are_read() {
        let mounts = "33 30 0:29 / /sys/fs/cgroup rw,relatime - cgroup2 cgroup2 rw\n";
        let places = find_places(mounts, "0::/user.slice/session-1.scope\n");
        assert_eq!(
            places.unified,
            [
                PathBuf::from("/sys/fs/cgroup/user.slice/session-1.scope"),
                PathBuf::from("/sys/fs/cgroup/user.slice")
            ]
        );
        let mounts = "33 30 0:29 /docker/abc /sys/fs/cgroup ro,relatime - cgroup2 cgroup rw\n";
        let places = find_places(mounts, "0::/docker/abc\n");
        assert_eq!(places.unified, [PathBuf::from("/sys/fs/cgroup")]);
    }
}
