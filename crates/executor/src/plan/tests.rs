//! The plan as data, on file systems that exist in a map only; the command line made from it as a snapshot.

use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::*;
use crate::sandbox::bwrap::{self, Descriptors, Features};
use crate::sandbox::{GitAccess, PathList, Rung};
use crate::view::fake::FakeView;

fn machine(extra: &[&str]) -> FakeView {
    let mut entries = vec![
        "/bin -> usr/bin",
        "/lib -> usr/lib",
        "/usr/bin/bash",
        "/usr/lib/",
        "/etc/passwd",
        "/etc/shadow",
        "/etc/resolv.conf -> /run/resolv/stub.conf",
        "/run/resolv/stub.conf",
        "/run/docker.sock=",
        "/tmp/",
        "/var/tmp/",
        "/dev/shm/",
        "/home/u/.ssh/id_ed25519",
        "/home/u/.netrc",
        "/home/u/p/src/main.rs",
        "/srv/data",
    ];
    entries.extend_from_slice(extra);
    FakeView::new(&entries)
}

fn planned(sandbox: &Sandbox, view: &FakeView, root: &str) -> Plan {
    let homes = [PathBuf::from("/home/u")];
    let request = Request {
        sandbox,
        root: Path::new(root),
        root_as_given: Path::new(root),
        workdir: Path::new(root),
        homes: &homes,
        session_tmp: Some(Path::new("/tmp/cmdgate-s/tmp")),
        shared_memory: 512 << 20,
    };
    plan(&request, view)
}

/// The command line, one option a line.
fn rendered(plan: &Plan, features: Features) -> String {
    let descriptors = Descriptors { seccomp: [10, 11], status: 12, block: 13, terminal: false };
    let words = bwrap::arguments(plan, features, descriptors, &["true".into()]);
    let mut text = String::new();
    for word in words {
        let word = word.to_string_lossy().into_owned();
        text.push_str(if word.starts_with("--") { "\n" } else { " " });
        text.push_str(&word);
    }
    text.trim_start().to_owned()
}

const FULL: Features = Features { rung: Rung::Full, size: true, root: false };

// contract: S27
#[test]
fn read_only_line() {
    let plan = planned(&Sandbox::read_only(), &machine(&[]), "/home/u/p");
    insta::assert_snapshot!(rendered(&plan, FULL));
}

// contract: S26, S27
#[test]
fn workspace_write_line_with_a_repository() {
    let view = machine(&[
        "/home/u/p/.git/HEAD",
        "/home/u/p/.git/config",
        "/home/u/p/.git/hooks/pre-commit.sample",
        "/home/u/p/.env",
        "/home/u/p/.env.local",
        "/home/u/p/.vscode/tasks.json",
        "/home/u/p/vendor/x/.git/config",
        "/home/u/p/own.sock=",
    ]);
    let plan = planned(&Sandbox::workspace_write(), &view, "/home/u/p");
    insta::assert_snapshot!(rendered(&plan, Features { root: true, ..FULL }));
}

// contract: S27
#[test]
fn confined_reads_line() {
    let sandbox = Sandbox { reads: Reads::ProjectAndSystem, ..Sandbox::read_only() };
    let plan = planned(&sandbox, &machine(&[]), "/home/u/p");
    insta::assert_snapshot!(rendered(&plan, FULL));
}

#[test]
fn lower_rungs_ask_for_less_and_never_for_fewer_namespaces() {
    let plan = planned(&Sandbox::read_only(), &machine(&[]), "/home/u/p");
    let reduced = rendered(&plan, Features { rung: Rung::Reduced, size: false, root: false });
    assert!(!reduced.contains("--disable-userns") && !reduced.contains("--size"), "{reduced}");
    let shared = rendered(&plan, Features { rung: Rung::SharedProc, size: true, root: false });
    assert!(shared.contains("--ro-bind /proc /proc") && !shared.contains("--proc /proc"), "{shared}");
    for line in [rendered(&plan, FULL), reduced, shared] {
        for option in [
            "--unshare-user",
            "--unshare-pid",
            "--unshare-ipc",
            "--unshare-net",
            "--cap-drop ALL",
            "--new-session",
            "--die-with-parent",
        ] {
            assert!(line.contains(option), "{option} is missing: {line}");
        }
    }
}

#[test]
fn a_secret_that_is_missing_is_not_mounted_and_one_behind_a_symlink_is_covered_where_it_lies() {
    let view = machine(&["/home/u/.aws -> /srv/aws", "/srv/aws/credentials"]);
    let plan = planned(&Sandbox::read_only(), &view, "/home/u/p");
    assert!(plan.hidden.contains(&PathBuf::from("/srv/aws")), "{:?}", plan.hidden);
    assert!(!plan.hidden.iter().any(|path| path.ends_with(".gnupg")), "{:?}", plan.hidden);
}

#[test]
fn the_home_as_project_still_hides_its_secrets() {
    let plan = planned(&Sandbox::workspace_write(), &machine(&["/home/u/.bashrc"]), "/home/u");
    assert_eq!(
        plan.decide(Operation::Read, Path::new("/home/u/.ssh/id_ed25519")),
        Access::Deny(Rule::Hidden("/home/u/.ssh".into()))
    );
    assert!(matches!(
        plan.decide(Operation::Write, Path::new("/home/u/.bashrc")),
        Access::Deny(Rule::Protected(_))
    ));
    assert_eq!(plan.decide(Operation::Write, Path::new("/home/u/notes")), Access::Allow);
}

#[test]
fn a_project_inside_a_secret_directory_is_laid_over_it() {
    let view = machine(&["/home/u/.aws/project/f", "/home/u/.aws/credentials"]);
    let plan = planned(&Sandbox::workspace_write(), &view, "/home/u/.aws/project");
    assert_eq!(plan.decide(Operation::Write, Path::new("/home/u/.aws/project/f")), Access::Allow);
    assert!(matches!(
        plan.decide(Operation::Read, Path::new("/home/u/.aws/credentials")),
        Access::Deny(Rule::Hidden(_))
    ));
}

// contract: S26
#[test]
fn protected_names_are_denied_whether_or_not_they_exist() {
    let view = machine(&["/home/u/p/.git/HEAD", "/home/u/p/.git/hooks/", "/home/u/p/.git/config"]);
    let plan = planned(&Sandbox::workspace_write(), &view, "/home/u/p");
    for path in [
        ".git/hooks/pre-commit",
        ".git/config",
        ".git/commondir",
        ".env",
        ".env.production",
        ".claude/settings.json",
        ".vscode/tasks.json",
        ".envrc",
        ".mcp.json",
        ".bashrc",
    ] {
        let path = Path::new("/home/u/p").join(path);
        assert!(matches!(plan.decide(Operation::Write, &path), Access::Deny(Rule::Protected(_))), "{path:?}");
        assert_eq!(plan.decide(Operation::Read, &path), Access::Allow, "{path:?}");
    }
    for path in [".git/index", ".git/objects/aa/bb", "src/main.rs", ".environment", ".gitignore"] {
        let path = Path::new("/home/u/p").join(path);
        assert_eq!(plan.decide(Operation::Write, &path), Access::Allow, "{path:?}");
    }
}

// contract: S26
#[test]
fn git_access_is_a_choice() {
    let view = machine(&["/home/u/p/.git/HEAD", "/home/u/p/.git/hooks/", "/home/u/p/.git/config"]);
    let closed = Sandbox { git: GitAccess::ReadOnly, ..Sandbox::workspace_write() };
    let plan = planned(&closed, &view, "/home/u/p");
    assert!(matches!(
        plan.decide(Operation::Write, Path::new("/home/u/p/.git/index")),
        Access::Deny(Rule::Protected(_))
    ));
    assert!(plan.mounts.contains(&Mount::ReadOnly("/home/u/p/.git".into())));
    let open = Sandbox { git: GitAccess::Open, ..Sandbox::workspace_write() };
    let plan = planned(&open, &view, "/home/u/p");
    assert_eq!(plan.decide(Operation::Write, Path::new("/home/u/p/.git/config")), Access::Allow);
}

#[test]
fn every_parent_of_a_protected_path_is_pinned_below_it() {
    let view = machine(&["/home/u/p/a/b/keep/f", "/home/u/p/.git/HEAD", "/home/u/p/.git/hooks/"]);
    let sandbox = Sandbox { protected: PathList::none().with("a/b/keep"), ..Sandbox::workspace_write() };
    let plan = planned(&sandbox, &view, "/home/u/p");
    let at = |mount: &Mount| {
        plan.mounts.iter().position(|known| known == mount).unwrap_or_else(|| panic!("{mount:?} missing"))
    };
    let pin_a = at(&Mount::Writable("/home/u/p/a".into()));
    let pin_b = at(&Mount::Writable("/home/u/p/a/b".into()));
    let keep = at(&Mount::ReadOnly("/home/u/p/a/b/keep".into()));
    let root = at(&Mount::Writable("/home/u/p".into()));
    assert!(root < pin_a && pin_a < pin_b && pin_b < keep);
    assert!(
        at(&Mount::Writable("/home/u/p/.git".into())) < at(&Mount::ReadOnly("/home/u/p/.git/hooks".into()))
    );
}

#[test]
fn a_worktree_is_granted_its_outside_directory_only_when_that_names_it_in_return() {
    let view = || {
        machine(&["/home/u/main/.git/HEAD", "/home/u/main/.git/hooks/", "/home/u/main/.git/config"])
            .with_text("/home/u/p/.git", "gitdir: /home/u/main/.git/worktrees/p\n")
            .with_text("/home/u/main/.git/worktrees/p/commondir", "../..\n")
    };
    let answered = view().with_text("/home/u/main/.git/worktrees/p/gitdir", "/home/u/p/.git\n");
    let plan = planned(&Sandbox::workspace_write(), &answered, "/home/u/p");
    assert!(plan.writable.contains(&PathBuf::from("/home/u/main/.git")), "{:?}", plan.writable);
    assert!(matches!(
        plan.decide(Operation::Write, Path::new("/home/u/main/.git/hooks/x")),
        Access::Deny(Rule::Protected(_))
    ));
    assert_eq!(plan.decide(Operation::Write, Path::new("/home/u/main/.git/objects/x")), Access::Allow);
    assert!(matches!(plan.decide(Operation::Write, Path::new("/home/u/main/f")), Access::Deny(_)));
    let forged = view().with_text("/home/u/main/.git/worktrees/p/gitdir", "/home/u/other/.git\n");
    let plan = planned(&Sandbox::workspace_write(), &forged, "/home/u/p");
    assert_eq!(plan.writable, [PathBuf::from("/home/u/p")]);
}

#[test]
fn sockets_of_the_host_are_covered_where_they_can_still_be_seen() {
    let view = machine(&["/home/u/p/w.sock=", "/var/lib/app/s.sock=", "/tmp/t.sock="]);
    let plan = planned(&Sandbox::read_only(), &view, "/home/u/p");
    let covered: Vec<&Mount> = plan
        .mounts
        .iter()
        .filter(|mount| matches!(mount, Mount::Cover(path) if path.to_string_lossy().ends_with(".sock")))
        .collect();
    assert_eq!(
        covered,
        [&Mount::Cover("/home/u/p/w.sock".into()), &Mount::Cover("/var/lib/app/s.sock".into())]
    );
    assert_eq!(plan.refuse_unix_sockets, None);
    let mut unknown = view.clone();
    unknown.sockets.unresolved = 1;
    assert!(planned(&Sandbox::read_only(), &unknown, "/home/u/p").refuse_unix_sockets.is_some());
    let online = Sandbox { network: Network::On, ..Sandbox::read_only() };
    assert!(planned(&online, &view, "/home/u/p").refuse_unix_sockets.is_some());
}

#[test]
fn confined_reads_show_the_project_and_the_system_and_nothing_else() {
    let sandbox = Sandbox {
        reads: Reads::ProjectAndSystem,
        read_roots: vec!["/home/u/.cargo".into()],
        ..Sandbox::workspace_write()
    };
    let view = machine(&["/home/u/.cargo/bin/cargo", "/home/other/f", "/root/f", "/w/f", "/mnt/f"]);
    let plan = planned(&sandbox, &view, "/home/u/p");
    for path in [
        "/home/u/.ssh/id_ed25519",
        "/home/u/.netrc",
        "/home/other/f",
        "/srv/data",
        "/root/f",
        "/w/f",
        "/mnt/f",
        "/var/lib",
        "/home",
    ] {
        assert!(matches!(plan.decide(Operation::Read, Path::new(path)), Access::Deny(_)), "{path}");
    }
    for path in
        ["/usr/bin/bash", "/etc/passwd", "/home/u/p/src/main.rs", "/home/u/.cargo/bin/cargo", "/tmp/x"]
    {
        assert_eq!(plan.decide(Operation::Read, Path::new(path)), Access::Allow, "{path}");
    }
    assert!(!plan.mounts.contains(&Mount::ReadOnly("/".into())));
    assert_eq!(plan.mounts.last(), Some(&Mount::Seal("/".into())));
}

/// What the mounts alone make of a path: the last one that covers it.
fn by_mounts(plan: &Plan, path: &Path) -> Option<bool> {
    plan.mounts.iter().rev().find_map(|mount| match mount {
        Mount::ReadOnly(at) | Mount::Cover(at) | Mount::ReadOnlyIfPresent(at) if path.starts_with(at) => {
            Some(false)
        }
        Mount::Writable(at) | Mount::WritableAt { target: at, .. } if path.starts_with(at) => Some(true),
        Mount::Memory { target, mode, .. } if path.starts_with(target) => Some(*mode != 0o700),
        Mount::Processes if path.starts_with("/proc") => Some(!path.starts_with("/proc/sys")),
        Mount::ReadOnly(_)
        | Mount::Cover(_)
        | Mount::ReadOnlyIfPresent(_)
        | Mount::Writable(_)
        | Mount::WritableAt { .. }
        | Mount::Memory { .. }
        | Mount::Processes
        | Mount::Devices
        | Mount::Link { .. }
        | Mount::Seal(_) => None,
    })
}

proptest! {
    /// One decision table: what it lets be written is what the mounts let be written, save for protected names
    /// that do not exist, which no mount can cover and the scan after the run takes care of.
    // contract: S27
    #[test]
    fn the_table_and_the_mounts_agree(
        parts in prop::collection::vec(prop::sample::select(vec![
            "home", "u", "p", ".git", "hooks", "config", "src", ".env", ".env.x", ".ssh", "tmp", "var", "etc", "shadow",
            "usr", "run", "docker.sock", "proc", "sys", "srv", "data", ".vscode", "f", "w.sock",
        ]), 1..6),
        confined in any::<bool>(),
        write in any::<bool>(),
        home in any::<bool>(),
    ) {
        let view = machine(&["/home/u/p/.git/HEAD", "/home/u/p/.git/hooks/", "/home/u/p/.git/config", "/home/u/p/.env",
            "/home/u/p/.vscode/f", "/home/u/p/w.sock=", "/proc/sys/"]);
        let mut sandbox = if write { Sandbox::workspace_write() } else { Sandbox::read_only() };
        if confined {
            sandbox.reads = Reads::ProjectAndSystem;
        }
        let plan = planned(&sandbox, &view, if home { "/home/u" } else { "/home/u/p" });
        let path = PathBuf::from(format!("/{}", parts.join("/")));
        let writable = by_mounts(&plan, &path).unwrap_or(false);
        match plan.decide(Operation::Write, &path) {
            Access::Allow => prop_assert!(writable, "the table allows {path:?}, the mounts do not"),
            Access::Deny(Rule::Protected(protected)) => {
                prop_assert!(!writable || view.kind(&protected) == Kind::Missing, "{path:?} is protected and can be written");
            }
            Access::Deny(rule) => prop_assert!(!writable, "{path:?} is denied by {rule:?} and can be written"),
        }
    }
}

#[test]
fn only_a_protected_path_may_be_missing_when_it_is_mounted() {
    let view = machine(&["/home/u/p/.env", "/home/u/p/.vscode/tasks.json"]);
    let mut plan = planned(&Sandbox::workspace_write(), &view, "/home/u/p");
    plan.tolerate(&["/home/u/p/.env".into(), "/usr".into(), "/home/u/p".into()]);
    let line = rendered(&plan, FULL);
    assert!(line.contains("--ro-bind-try /home/u/p/.env /home/u/p/.env\n"), "{line}");
    assert!(line.contains("--ro-bind /home/u/p/.vscode /home/u/p/.vscode\n"), "{line}");
    assert!(line.contains("--bind /home/u/p /home/u/p\n"), "{line}");
    assert!(matches!(plan.decide(Operation::Write, Path::new("/home/u/p/.env")), Access::Deny(_)));
}

// contract: S27
#[test]
fn what_a_private_place_lies_over_is_hidden_without_a_mount() {
    let view = machine(&[
        "/tmp/h/.bash_history",
        "/tmp/h/.ssh/id_ed25519",
        "/tmp/h/p/key",
        "/var/tmp/h/key",
        "/run/systemd/resolve/key",
    ]);
    let homes = [PathBuf::from("/tmp/h")];
    let hidden = ["/tmp/h/p/key", "/var/tmp/h/key", "/run/systemd/resolve/key", "/proc/kcore"];
    let hidden = hidden.into_iter().fold(PathList::default_hidden(), PathList::with);
    let sandbox = Sandbox { hidden, ..Sandbox::workspace_write() };
    for root in ["/home/u/p", "/tmp/h/p", "/tmp/h"] {
        let request = Request {
            sandbox: &sandbox,
            root: Path::new(root),
            root_as_given: Path::new(root),
            workdir: Path::new(root),
            homes: &homes,
            session_tmp: Some(Path::new("/tmp/cmdgate-s/tmp")),
            shared_memory: 512 << 20,
        };
        let plan = plan(&request, &view);
        let covered = |path: &str| {
            plan.mounts.iter().any(|mount| {
                matches!(mount, Mount::Cover(at) | Mount::Memory { target: at, .. } if at == Path::new(path))
            })
        };
        // What the project brings back is covered, as ever.
        assert_eq!(covered("/tmp/h/p/key"), root != "/home/u/p", "{root}");
        assert_eq!(covered("/tmp/h/.bash_history"), root == "/tmp/h", "{root}");
        assert_eq!(covered("/tmp/h/.ssh"), root == "/tmp/h", "{root}");
        assert!(!covered("/var/tmp/h/key") && covered("/run/systemd/resolve/key"), "{root}");
        for path in ["/tmp/h/.bash_history", "/tmp/h/.ssh/id_ed25519", "/tmp/h/p/key", "/var/tmp/h/key"] {
            let access = plan.decide(Operation::Read, Path::new(path));
            assert!(matches!(access, Access::Deny(Rule::Hidden(_))), "{root} {path}: {access:?}");
        }
        assert_eq!(plan.replaced(&homes[0]), root != "/tmp/h", "{root}");
        assert!(plan.replaced(Path::new("/tmp")) && !plan.replaced(Path::new("/proc/kcore")), "{root}");
    }
}
