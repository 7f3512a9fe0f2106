//! One table, two back ends: what a plan says of an operation on a path, and what the macOS profile made from that plan
//! lets through, must be the same. (That the mounts of the Linux sandbox agree with the plan is tested beside it.)
#![expect(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may panic")]

mod sbpl;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use cmdgate_executor::plan::{Access, Operation, Plan, Request, plan};
use cmdgate_executor::sandbox::seatbelt::{Confinement, Door};
use cmdgate_executor::view::{FsView, Kind, Sockets};
use cmdgate_executor::{GitAccess, Mode, PathList, Reads, Sandbox};
use proptest::prelude::*;
use sbpl::Evaluator;

/// Files that exist in a list only; a final `/` marks a directory.
struct Files(BTreeSet<PathBuf>, BTreeSet<PathBuf>);

impl Files {
    fn new(entries: &[&str]) -> Self {
        let mut files = BTreeSet::new();
        let mut directories = BTreeSet::from([PathBuf::from("/")]);
        for entry in entries {
            let path = Path::new(entry);
            directories.extend(path.ancestors().skip(1).map(Path::to_owned));
            if entry.ends_with('/') {
                directories.insert(path.to_owned())
            } else {
                files.insert(path.to_owned())
            };
        }
        Self(files, directories)
    }
}

impl FsView for Files {
    fn kind(&self, path: &Path) -> Kind {
        if self.0.contains(path) {
            Kind::File
        } else if self.1.contains(path) {
            Kind::Directory
        } else {
            Kind::Missing
        }
    }

    fn real(&self, path: &Path) -> Option<PathBuf> {
        (self.kind(path) != Kind::Missing).then(|| path.to_owned())
    }

    fn entries(&self, directory: &Path) -> Vec<(OsString, Kind)> {
        let below = self.0.iter().chain(&self.1).filter(|path| path.parent() == Some(directory));
        below.map(|path| (path.file_name().unwrap().to_owned(), self.kind(path))).collect()
    }

    fn text(&self, _path: &Path) -> Option<Vec<u8>> {
        None
    }

    fn sockets(&self) -> Sockets {
        Sockets::default()
    }
}

const TMP: &str = "/private/var/folders/x/cmdgate-1";
const HOME: &str = "/Users/me";
const ROOT: &str = "/Users/me/project";

fn machine() -> Files {
    Files::new(&[
        "/usr/bin/bash",
        "/bin/bash",
        "/Users/me/.ssh/id",
        "/Users/me/.netrc",
        "/Users/me/.gitconfig",
        "/Users/me/other/file",
        "/Users/me/project/src/main.rs",
        "/Users/me/project/.git/HEAD",
        "/Users/me/project/.git/config",
        "/Users/me/project/.git/hooks/",
        "/Users/me/project/.git/objects/",
        "/Users/me/project/.env",
        "/Users/me/project/.vscode/tasks.json",
        "/Users/me/project/secret.txt",
        "/Users/me/project/vendor/lib/.git/config",
        "/Users/me/extra/file",
        "/Users/me/extra/.envrc",
        "/Volumes/stick/file",
        "/private/var/folders/x/cmdgate-1/",
    ])
}

fn planned(sandbox: &Sandbox, root: &str) -> (Plan, Evaluator) {
    let homes = [PathBuf::from(HOME)];
    let request = Request {
        sandbox,
        root: Path::new(root),
        root_as_given: Path::new(root),
        workdir: Path::new(root),
        homes: &homes,
        session_tmp: Some(Path::new(TMP)),
        shared_memory: 1 << 20,
    };
    let plan = plan(&request, &machine());
    let profile = Confinement::of(&plan, Path::new(TMP), Door::Closed).profile().unwrap();
    let evaluator = Evaluator::new(&profile).unwrap_or_else(|error| panic!("{error}\n{}", profile.text));
    (plan, evaluator)
}

fn plan_allows(plan: &Plan, operation: Operation, path: &str) -> bool {
    plan.decide(operation, Path::new(path)) == Access::Allow
}

/// What a profile lets through. Reading is looking into a file; making and changing must be answered alike.
fn profile_allows(evaluator: &Evaluator, operation: Operation, path: &str) -> bool {
    let path = Path::new(path);
    match operation {
        Operation::Read => evaluator.allows("file-read-data", path),
        Operation::Write => {
            let change = evaluator.allows("file-write-data", path);
            assert_eq!(change, evaluator.allows("file-write-create", path), "{}", path.display());
            change
        }
    }
}

const R: Operation = Operation::Read;
const W: Operation = Operation::Write;

fn both(sandbox: &Sandbox, root: &str, table: &[(Operation, &str, bool)]) {
    let (plan, evaluator) = planned(sandbox, root);
    for &(operation, path, allowed) in table {
        assert_eq!(plan_allows(&plan, operation, path), allowed, "plan: {operation:?} {path}");
        assert_eq!(profile_allows(&evaluator, operation, path), allowed, "profile: {operation:?} {path}");
    }
}

// contract: S25, S27
#[test]
fn read_only() {
    both(
        &Sandbox::read_only(),
        ROOT,
        &[
            (R, "/Users/me/project/src/main.rs", true),
            (R, "/Users/me/other/file", true),
            (R, "/usr/bin/bash", true),
            (R, "/Users/me/.ssh/id", false),
            (R, "/Users/me/.ssh", false),
            (R, "/Users/me/.netrc", false),
            (W, "/Users/me/.ssh/id", false),
            (W, "/Users/me/project/src/main.rs", false),
            (W, "/Users/me/project/new", false),
            (W, "/Users/me/project/.git/index", false),
            (W, "/Users/me/other/file", false),
            (W, "/usr/bin/bash", false),
        ],
    );
}

// contract: S25, S26, S27
#[test]
fn workspace_write() {
    let sandbox = Sandbox { writable_roots: vec!["/Users/me/extra".into()], ..Sandbox::workspace_write() };
    both(
        &sandbox,
        ROOT,
        &[
            (W, "/Users/me/project/src/main.rs", true),
            (W, "/Users/me/project/new/file", true),
            (W, "/Users/me/project", true),
            (W, "/Users/me/projectshop", false),
            (W, "/Users/me/extra/file", true),
            (W, "/Users/me/other/file", false),
            (W, "/Users/me/.gitconfig", false),
            (W, "/etc/hosts", false),
            (W, "/Users/me/project/.git/objects/ab/cd", true),
            (W, "/Users/me/project/.git/index.lock", true),
            (W, "/Users/me/project/.git/hooks", false),
            (W, "/Users/me/project/.git/hooks/pre-commit", false),
            (W, "/Users/me/project/.git/config", false),
            (W, "/Users/me/project/.git/config.worktree", false),
            (W, "/Users/me/project/.git/commondir", false),
            (W, "/Users/me/project/vendor/lib/.git/config", false),
            (W, "/Users/me/project/.env", false),
            (W, "/Users/me/project/.env.production", false),
            (W, "/Users/me/project/.envrc", false),
            (W, "/Users/me/project/.claude/settings.json", false),
            (W, "/Users/me/project/.vscode/tasks.json", false),
            (W, "/Users/me/project/.mcp.json", false),
            (W, "/Users/me/project/environment", true),
            (W, "/Users/me/extra/.envrc", false),
            (W, "/Users/me/extra/.codex", false),
            (R, "/Users/me/project/.git/config", true),
            (R, "/Users/me/.ssh/id", false),
        ],
    );
}

// contract: S26
#[test]
fn the_home_directory_as_project() {
    both(
        &Sandbox::workspace_write(),
        HOME,
        &[
            (W, "/Users/me/other/file", true),
            (W, "/Users/me/.ssh/id", false),
            (R, "/Users/me/.ssh/id", false),
            (R, "/Users/me/.netrc", false),
            (W, "/Users/me/.netrc", false),
            (W, "/Users/me/.gitconfig", false),
            (W, "/Users/me/.zshrc", false),
            (W, "/Users/me/.bash_profile", false),
        ],
    );
}

// contract: S25
#[test]
fn a_project_inside_a_secret_directory() {
    let root = "/Users/me/.ssh";
    let sandbox = Sandbox { hidden: PathList::none().with("/Users/me"), ..Sandbox::workspace_write() };
    both(
        &sandbox,
        root,
        &[
            (R, "/Users/me/other/file", false),
            (R, "/Users/me/.ssh/id", true),
            (W, "/Users/me/.ssh/id", true),
            (W, "/Users/me/.ssh/.envrc", false),
        ],
    );
}

// contract: S26
#[test]
fn choices_about_git_and_the_lists() {
    let read_only_git = Sandbox { git: GitAccess::ReadOnly, ..Sandbox::workspace_write() };
    both(
        &read_only_git,
        ROOT,
        &[(W, "/Users/me/project/.git/objects/x", false), (W, "/Users/me/project/src", true)],
    );
    let open = Sandbox {
        git: GitAccess::Open,
        protected: PathList::none().with("secret.txt"),
        hidden: PathList::none().with("src"),
        ..Sandbox::workspace_write()
    };
    both(
        &open,
        ROOT,
        &[
            (W, "/Users/me/project/.git/hooks/x", true),
            (W, "/Users/me/project/.envrc", true),
            (W, "/Users/me/project/secret.txt", false),
            (R, "/Users/me/project/secret.txt", true),
            (R, "/Users/me/project/src/main.rs", false),
            (W, "/Users/me/project/src/main.rs", false),
            (R, "/Users/me/.ssh/id", true),
        ],
    );
}

#[test]
fn only_the_project_and_the_system() {
    for mode in [Mode::ReadOnly, Mode::WorkspaceWrite] {
        let sandbox = Sandbox {
            mode,
            reads: Reads::ProjectAndSystem,
            read_roots: vec!["/Users/me/extra".into()],
            ..Sandbox::default()
        };
        let write = mode == Mode::WorkspaceWrite;
        both(
            &sandbox,
            ROOT,
            &[
                (R, "/Users/me/project/src/main.rs", true),
                (R, "/usr/bin/bash", true),
                (R, "/Users/me/extra/file", true),
                (W, "/Users/me/extra/file", false),
                (R, "/Users/me/other/file", false),
                (R, "/Users/me/.ssh/id", false),
                (R, "/Users/me/.gitconfig", false),
                (R, "/Volumes/stick/file", false),
                (W, "/Volumes/stick/file", false),
                (W, "/Users/me/project/new", write),
                (W, "/Users/me/project/.envrc", false),
            ],
        );
    }
}

/// What only macOS denies, and what it must.
// contract: S26
#[test]
fn names_cannot_be_moved_or_respelled_away() {
    let (_, evaluator) = planned(&Sandbox::workspace_write(), ROOT);
    let denied = |operation: &str, path: &str| !evaluator.allows(operation, Path::new(path));
    for pinned in [
        ROOT,
        "/Users/me/project/.git",
        "/Users/me/project/vendor",
        "/Users/me/project/vendor/lib",
        "/Users/me/project/vendor/lib/.git",
        TMP,
    ] {
        assert!(denied("file-write-unlink", pinned), "{pinned}");
    }
    assert!(!denied("file-write-unlink", "/Users/me/project/src"));
    for respelled in [
        "/Users/me/project/.ENV",
        "/Users/me/project/.Claude/x",
        "/Users/me/project/.git/Config",
        "/Users/me/project/.ENV.x",
    ] {
        assert!(denied("file-write-create", respelled), "{respelled}");
    }
    assert!(denied("file-link", "/Users/me/other/file"));
}

#[test]
fn there_is_one_directory_for_temporary_files() {
    for sandbox in [Sandbox::read_only(), Sandbox::workspace_write()] {
        let (_, evaluator) = planned(&sandbox, ROOT);
        for (path, allowed) in [
            (TMP.to_owned() + "/x", true),
            ("/tmp/x".into(), false),
            ("/private/tmp/x".into(), false),
            ("/var/tmp/x".into(), false),
            ("/run/x".into(), false),
            ("/dev/shm/x".into(), false),
            ("/proc/x".into(), false),
        ] {
            assert_eq!(profile_allows(&evaluator, W, &path), allowed, "{path}");
        }
    }
}

fn sandboxes() -> impl Strategy<Value = Sandbox> {
    let mode = prop::sample::select(vec![Mode::ReadOnly, Mode::WorkspaceWrite]);
    let reads = prop::sample::select(vec![Reads::Everything, Reads::ProjectAndSystem]);
    let git = prop::sample::select(vec![GitAccess::Guarded, GitAccess::ReadOnly, GitAccess::Open]);
    let places =
        vec!["/Users/me/extra", "/Users/me", "/Users/me/project/src", "/Users/me/other", "/Volumes/stick"];
    let roots = prop::collection::vec(prop::sample::select(places.clone()), 0..3);
    let hidden = prop::collection::vec(
        prop::sample::select(vec![
            "src",
            "~/other",
            "/Users/me",
            "/Users/me/project/.git",
            "~/.ssh",
            "/Volumes",
            "*.txt",
            ".env*",
        ]),
        0..4,
    );
    let protected = prop::collection::vec(
        prop::sample::select(vec![".env", ".env.*", "src", "vendor/lib", "new", ".git", "s*"]),
        0..4,
    );
    (mode, reads, git, roots.clone(), roots, hidden, protected).prop_map(
        |(mode, reads, git, writable, read, hidden, protected)| Sandbox {
            mode,
            reads,
            git,
            writable_roots: writable.into_iter().map(PathBuf::from).collect(),
            read_roots: read.into_iter().map(PathBuf::from).collect(),
            hidden: hidden.into_iter().fold(PathList::none(), PathList::with),
            protected: protected.into_iter().fold(PathList::none(), PathList::with),
            ..Sandbox::default()
        },
    )
}

fn paths() -> impl Strategy<Value = String> {
    let names = prop::sample::select(vec![
        "Users",
        "me",
        "work",
        "src",
        "main.rs",
        ".git",
        "hooks",
        "config",
        "commondir",
        "objects",
        ".env",
        ".env.x",
        "vendor",
        "lib",
        "new",
        "other",
        "file",
        ".ssh",
        "id",
        "extra",
        "Volumes",
        "stick",
        "usr",
        "bin",
        "bash",
        "secret.txt",
        "s",
    ]);
    let start = prop::sample::select(vec![
        "",
        "/Users/me",
        "/Users/me/project",
        "/Users/me/project/.git",
        "/Users/me/project/vendor/lib",
    ]);
    (start, prop::collection::vec(names, 1..4))
        .prop_map(|(start, names)| format!("{start}/{}", names.join("/")))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1000) })]

    // contract: S25, S26, S27
    #[test]
    fn both_back_ends_say_the_same(
        sandbox in sandboxes(),
        root in prop::sample::select(vec![ROOT, HOME, "/Users/me/extra", "/Volumes/stick"]),
        paths in prop::collection::vec(paths(), 12),
    ) {
        let (plan, evaluator) = planned(&sandbox, root);
        for path in paths {
            for operation in [R, W] {
                prop_assert_eq!(
                    profile_allows(&evaluator, operation, &path),
                    plan_allows(&plan, operation, &path),
                    "{:?} {} in {}", operation, path, root
                );
            }
        }
    }
}
