//! The macOS profile, read back and asked questions. Nothing here needs a Mac.
#![expect(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may panic")]

mod sbpl;

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use cmdgate_executor::sandbox::seatbelt::{Confinement, Covers, Door, FileRule, Profile, REFUSED, remedy};
use proptest::prelude::*;
use sbpl::Evaluator;

fn tree(path: impl Into<PathBuf>, read: Option<bool>, write: Option<bool>) -> FileRule {
    FileRule { covers: Covers::Tree(path.into()), read, write, any_case: false }
}

fn protected(path: impl Into<PathBuf>) -> FileRule {
    FileRule { any_case: true, ..tree(path, None, Some(false)) }
}

fn workspace() -> Confinement {
    Confinement {
        read_everything: true,
        rules: vec![
            tree("/Users/me/project", Some(true), Some(true)),
            protected("/Users/me/project/.git/hooks"),
            protected("/Users/me/project/.envrc"),
            FileRule {
                covers: Covers::Prefix { directory: "/Users/me/project".into(), prefix: ".env.".into() },
                read: None,
                write: Some(false),
                any_case: true,
            },
            tree("/Users/me/.ssh", Some(false), Some(false)),
        ],
        writable: vec!["/Users/me/project".into()],
        pinned: vec!["/Users/me/project/.git".into()],
        tmp: "/private/var/folders/x/cmdgate-1".into(),
        door: Door::Closed,
    }
}

fn evaluate(confinement: &Confinement) -> Evaluator {
    Evaluator::new(&confinement.profile().unwrap()).unwrap()
}

fn show(profile: &Profile) -> String {
    let mut text = profile.text.clone();
    for (name, value) in &profile.parameters {
        text += &["; -D ", name, "=", &value.to_string_lossy(), "\n"].concat();
    }
    text
}

// contract: S25, S27
#[test]
fn the_profile_of_a_writable_workspace() {
    insta::assert_snapshot!(show(&workspace().profile().unwrap()));
}

// contract: S25, S27
#[test]
fn the_profile_of_a_project_that_sees_the_system_only() {
    let mut confinement = workspace();
    confinement.read_everything = false;
    confinement.writable.clear();
    confinement.rules = vec![tree("/Users/me/project", Some(true), Some(false))];
    confinement.door = Door::Proxy(3128);
    insta::assert_snapshot!(show(&confinement.profile().unwrap()));
}

// contract: S25, S26
#[test]
fn the_last_rule_that_matches_decides() {
    let evaluator = evaluate(&workspace());
    for (operation, path, allowed) in [
        ("file-read-data", "/etc/hosts", true),
        ("file-read-data", "/Users/me/.sshx", true),
        ("file-read-data", "/Users/me/.ssh", false),
        ("file-read-metadata", "/Users/me/.ssh/id", false),
        ("file-read-data", "/System/Volumes/Data/Users/me/.ssh/id", false),
        ("process-exec", "/Users/me/.ssh/tool", false),
        ("file-write-data", "/Users/me/.ssh/id", false),
        ("file-write-data", "/Users/me/project/src/main.rs", true),
        ("file-write-create", "/Users/me/project/new", true),
        ("file-write-create", "/Users/me/projectshop", false),
        ("file-write-data", "/Users/me/other", false),
        ("file-write-data", "/etc/hosts", false),
        ("file-write-create", "/Users/me/project/.git/objects/x", true),
        ("file-write-create", "/Users/me/project/.git/hooks", false),
        ("file-write-create", "/Users/me/project/.git/hooks/pre-commit", false),
        ("file-write-create", "/Users/me/project/.git/HOOKS/pre-commit", false),
        ("file-write-create", "/Users/me/project/.git/hooksx", true),
        ("file-write-create", "/Users/me/project/.EnvRC", false),
        ("file-write-create", "/Users/me/project/.env.local", false),
        ("file-write-create", "/Users/me/project/.ENV.local/x", false),
        ("file-write-create", "/Users/me/project/xenvx", true),
        ("file-write-create", "/Users/me/project/sub/.env.local", true),
        ("file-write-unlink", "/Users/me/project/file", true),
        ("file-write-unlink", "/Users/me/project/.git", false),
        ("file-write-unlink", "/Users/me/project", false),
        ("file-write-unlink", "/private/var/folders/x/cmdgate-1", false),
        ("file-write-create", "/private/var/folders/x/cmdgate-1/t", true),
        ("file-write-create", "/private/tmp/t", false),
        ("file-write-setugid", "/Users/me/project/s", false),
        ("file-link", "/Users/me/other", false),
        ("file-link", "/Users/me/project/a", false),
        ("file-write-data", "/dev/null", true),
        ("file-write-data", "/dev/disk0", false),
        ("file-write-data", "/dev/ttys003", false),
    ] {
        assert_eq!(evaluator.allows(operation, Path::new(path)), allowed, "{operation} {path}");
    }
}

// contract: S25
#[test]
fn without_a_rule_nothing_is_allowed() {
    let evaluator = evaluate(&Confinement { tmp: "/private/tmp/x".into(), ..Confinement::default() });
    for operation in [
        "appleevent-send",
        "lsopen",
        "file-mknod",
        "file-mount",
        "iokit-open",
        "job-creation",
        "nvram-set",
        "system-reboot",
        "process-exec",
        "file-read-data",
        "file-write-create",
        "file-chroot",
        "system-kext-load",
        "dynamic-code-generation",
    ] {
        assert!(!evaluator.allows(operation, Path::new("/Users/me/x")), "{operation}");
    }
    let lookups = evaluator.rules_for("mach-lookup").concat();
    for service in ["launchservicesd", "SecurityServer", "securityd", "appleevents", "pasteboard", "tccd"] {
        assert!(!lookups.contains(service), "{service}");
    }
}

// contract: S25
#[test]
fn a_closed_door_names_no_address_and_an_open_one_no_socket() {
    let network = |door| {
        let evaluator = evaluate(&Confinement { door, ..workspace() });
        [
            evaluator.rules_for("network-outbound"),
            evaluator.rules_for("network-bind"),
            evaluator.rules_for("network-inbound"),
        ]
        .concat()
        .concat()
    };
    assert!(!network(Door::Closed).contains("\"ip\""));
    let loopback = network(Door::Loopback);
    assert!(loopback.contains("localhost:*") && !loopback.contains("*:*\""), "{loopback}");
    let proxy = network(Door::Proxy(3128));
    assert!(proxy.contains("localhost:3128") && !proxy.contains("localhost:*"), "{proxy}");
    let open = network(Door::Open);
    assert!(open.contains("*:*") && !open.contains("allow []"), "{open}");
    assert!(!open.contains("docker"));
}

#[test]
fn only_what_is_shown_is_seen() {
    let mut confinement = workspace();
    confinement.read_everything = false;
    let evaluator = evaluate(&confinement);
    for (operation, path, allowed) in [
        ("file-read-data", "/usr/bin/git", true),
        ("process-exec", "/usr/bin/git", true),
        ("file-read-data", "/Users/me/project/a", true),
        ("file-read-metadata", "/Users/me", true),
        ("file-read-metadata", "/", true),
        ("file-read-data", "/Users/me", false),
        ("file-read-data", "/Users/me/other", false),
        ("file-read-metadata", "/Users/me/other", false),
        ("process-exec", "/Users/me/other", false),
        ("file-read-data", "/System/Library/x", true),
        ("file-read-data", "/System/Volumes/Data/Users/me/other", false),
        ("file-read-data", "/Volumes/Stick/x", false),
    ] {
        assert_eq!(evaluator.allows(operation, Path::new(path)), allowed, "{operation} {path}");
    }
}

#[test]
fn paths_that_cannot_be_said_are_an_error() {
    let relative = Confinement { writable: vec!["work".into()], ..workspace() };
    assert_eq!(relative.profile().unwrap_err().path, Path::new("work"));
    let odd = OsString::from_vec(b"/ws/\xff".to_vec());
    // A parameter can be any path; an expression cannot.
    let mut confinement = Confinement { rules: vec![tree(&odd, Some(true), Some(true))], ..workspace() };
    assert!(confinement.profile().is_ok());
    confinement.rules.push(protected(PathBuf::from(&odd).join(".envrc")));
    assert_eq!(confinement.profile().unwrap_err().reason, "it is not UTF-8");
}

#[test]
fn arguments_come_in_the_order_that_the_program_reads() {
    let profile = workspace().profile().unwrap();
    let command: Vec<OsString> = ["/bin/bash", "-c", "echo \"$0\" --"].map(OsString::from).into();
    let arguments = profile.arguments(&command);
    let text: Vec<&str> = arguments.iter().map(|argument| argument.to_str().unwrap()).collect();
    assert_eq!((text[0], text[1]), ("-p", profile.text.as_str()));
    let end = text.iter().position(|&argument| argument == "--").unwrap();
    for (pair, (name, value)) in text[2..end].chunks(2).zip(&profile.parameters) {
        assert_eq!((pair[0], pair[1]), ("-D", format!("{name}={}", value.display()).as_str()));
    }
    assert_eq!(end - 2, profile.parameters.len() * 2);
    assert_eq!(text[end + 1..end + 3], ["/bin/sh", "-c"]);
    assert_eq!(text[end + 5..], ["/bin/bash", "-c", "echo \"$0\" --"]);
}

/// A `sandbox-exec` that records what it was given and then does as `FAKE` says.
const FAKE: &str = r#"#!/bin/bash
printf '%s\0' "$@" >"$RECORD"
[ "$FAKE" = nested ] && { echo 'sandbox-exec: sandbox_apply: Operation not permitted' >&2; exit 71; }
while getopts 'f:n:p:D:' option; do :; done
shift $((OPTIND - 1))
exec "$@"
"#;

fn run_fake(behaviour: &str, command: &[&str]) -> (Vec<String>, String, std::process::Output) {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("sandbox-exec");
    std::fs::write(&program, FAKE).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let record = directory.path().join("record");
    let marker = directory.path().join("marker");
    let command: Vec<OsString> = command.iter().map(OsString::from).collect();
    let output = std::process::Command::new("bash")
        .args(["-c", "exec 0>\"$1\"; shift; exec \"$@\"", "bash"])
        .args([&marker, &program])
        .args(workspace().profile().unwrap().arguments(&command))
        .env("RECORD", &record)
        .env("FAKE", behaviour)
        .output()
        .unwrap();
    let recorded = std::fs::read_to_string(record).unwrap();
    let recorded = recorded.split_terminator('\0').map(str::to_owned).collect();
    (recorded, std::fs::read_to_string(marker).unwrap(), output)
}

// contract: S25
#[test]
fn the_marker_says_that_the_command_ran_and_stays_out_of_its_reach() {
    let script = "echo $#-$1; cat; ls -l /proc/self/fd | grep -c /marker; exit 71";
    let (recorded, marker, output) = run_fake("apply", &["/bin/bash", "-c", script, "x", "a b"]);
    assert_eq!(marker, "r");
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text, "1-a b\n0\n");
    // The command's own 71 is not mistaken for a failing sandbox, for there was a byte.
    assert_eq!(output.status.code(), Some(REFUSED));
    assert_eq!(recorded[0], "-p");
}

// contract: S25
#[test]
fn a_refused_profile_gives_no_marker_and_a_remedy() {
    let (_, marker, output) = run_fake("nested", &["/bin/bash", "-c", "echo ran"]);
    assert_eq!((marker.as_str(), output.stdout.as_slice()), ("", b"".as_slice()));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(remedy(output.status.code(), &said).contains("sandboxes do not nest"));
    assert!(remedy(Some(REFUSED), "profile: line 3").contains("refused the profile"));
    assert!(remedy(None, "").contains("/usr/bin/sandbox-exec"));
}

fn name() -> impl Strategy<Value = String> {
    let odd = prop::sample::select(vec![
        '"', '\\', '\n', ')', '(', ';', '.', '*', '+', '?', '[', ']', '{', '}', '|', '^', '$', ' ', '=', 'é',
        '🙂', 'a', 'B', '-', '#', '\'',
    ]);
    prop::collection::vec(odd, 1..8)
        .prop_map(|characters| characters.into_iter().collect::<String>())
        .prop_filter("these two are no names", |name| name != "." && name != "..")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    // contract: S27
    #[test]
    fn any_name_is_quoted_so_that_it_means_itself(root in name(), secret in name(), inner in name(), other in name()) {
        let root = format!("/ws/{root}");
        let guarded = format!("{root}/{inner}");
        let hidden = format!("/home/{secret}");
        let confinement = Confinement {
            read_everything: true,
            rules: vec![
                tree(&root, Some(true), Some(true)),
                protected(&guarded),
                FileRule {
                    covers: Covers::Prefix { directory: PathBuf::from(&root), prefix: OsString::from(format!("{inner}%")) },
                    read: None, write: Some(false), any_case: true,
                },
                tree(&hidden, Some(false), Some(false)),
            ],
            writable: vec![PathBuf::from(&root)],
            pinned: Vec::new(),
            tmp: "/private/tmp/x".into(),
            door: Door::Closed,
        };
        let evaluator = evaluate(&confinement);
        let allows = |operation: &str, path: &str| evaluator.allows(operation, Path::new(path));
        let denied = |path: String| !allows("file-write-create", &path);
        let secret_file = hidden.clone() + "/x";
        prop_assert!(!allows("file-read-data", &secret_file));
        prop_assert!(denied(guarded.clone()));
        prop_assert!(denied(root.clone() + "/" + &inner.to_ascii_uppercase()));
        prop_assert!(denied(guarded.clone() + "/x"));
        prop_assert!(denied(guarded.clone() + "%x"));
        let touched = other.eq_ignore_ascii_case(&inner);
        prop_assert_eq!(denied(root + "/" + &other), touched);
        let plain = String::from("/home/") + &other;
        if plain != hidden {
            prop_assert!(allows("file-read-data", &plain));
        }
    }
}
