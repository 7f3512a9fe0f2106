//! The promises of SECURITY.md that no other test names, each by its number.

use cmdgate_classifier::{Context, Grammar, Verdict, classify};
use cmdgate_harness::store::Store;
use cmdgate_tests::{Project, Ran};
use std::os::unix::fs::symlink;

const WRITE: [&str; 4] = ["--sandbox", "workspace_write", "--approval", "never"];

#[test]
fn what_is_not_known_is_held_back() {
    // promise: 2
    // contract: S8, S12
    let context = Context::new(Grammar::Sequence).with_root("/home/user/project");
    for command in [
        "frobnicate",
        "./cat a.txt",
        "/bin/cat a.txt",
        "PATH=. cat a.txt",
        "if true",
        "git frobnicate",
        "ls --frobnicate",
        "cat -@",
        "git log --color=purple",
        "cat a.txt b.txt > c.txt",
        "uniq a.txt b.txt",
        "cat a.txt\u{b}",
        "coproc cat",
        "cat ${x@P}",
    ] {
        assert_eq!(classify(command, &context).verdict(), Verdict::NeedsReview, "{command}");
    }
}

#[test]
fn conditions_that_cannot_be_met_hold_a_safe_text_back() {
    // promise: 3
    // contract: X1
    let project = Project::new();
    symlink("../outside/secret.txt", project.root().join("link.txt")).unwrap();
    let fifo = std::process::Command::new("mkfifo").arg(project.root().join("pipe")).status().unwrap();
    assert!(fifo.success());
    for held in ["cat link.txt", "cat pipe", "cat *", "grep -c x link.txt"] {
        assert_eq!(project.run(&[], held).code, 126, "{held}");
    }
    std::fs::remove_file(project.root().join("pipe")).unwrap();
    // A shim of a version manager runs what a file of the project names.
    let shims = project.scratch().join(".asdf/shims");
    project.write_beside(".asdf/shims/head", "#!/bin/sh\ncat a.txt\n");
    let shim = shims.join("head");
    std::process::Command::new("chmod").arg("+x").arg(&shim).status().unwrap();
    let with_shims = |command: &str| {
        let mut run = project.command(["run", "--", command]);
        run.env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", shims.display())).status().unwrap().code()
    };
    assert_eq!((with_shims("head a.txt"), with_shims("cat a.txt")), (Some(126), Some(0)));
    // What may follow links on the way runs where they lead nowhere.
    let recursive = project.run(&["--grammar", "sequence"], "grep -R CANARY . || echo none");
    assert_eq!(recursive.code, 0, "{recursive:?}");
    assert!(
        recursive.stdout.contains("none") && !recursive.stdout.contains("CANARY-SECRET"),
        "{recursive:?}"
    );
    // A hostile configuration is neutralised.
    project.write("pwn.sh", "#!/bin/sh\ntouch \"$(dirname \"$0\")/PWNED\"\n");
    std::process::Command::new("chmod").args(["+x", "pwn.sh"]).current_dir(project.root()).status().unwrap();
    for (key, value) in
        [("core.fsmonitor", "./pwn.sh"), ("diff.external", "./pwn.sh"), ("core.pager", "./pwn.sh")]
    {
        let set = std::process::Command::new("git")
            .args(["config", key, value])
            .current_dir(project.root())
            .status();
        assert!(set.unwrap().success());
    }
    for command in ["git status", "git log -p", "git ls-files -o"] {
        let ran = project.run(&[], command);
        assert_eq!(ran.code, 0, "{command}: {ran:?}");
        assert!(!project.root().join("PWNED").exists(), "{command}");
    }
}

#[test]
fn a_deny_is_final_behind_every_wrapper() {
    // promise: 4, 5
    // contract: P3, P8
    let project = Project::new();
    project.write_beside(
        "config/cmdgate/policy.toml",
        "[[rule]]\nact = \"exec\"\neffect = \"allow\"\npattern = \"*\"\n\n\
         [[rule]]\nact = \"exec\"\neffect = \"deny\"\npattern = \"rm **\"\n",
    );
    project.write("victim", "x");
    for command in [
        "rm victim",
        "/bin/rm victim",
        "true && rm victim",
        "bash -c 'rm victim'",
        "bash -lc \"true; rm victim\"",
        "env A=b rm victim",
        "timeout 5 rm victim",
        "echo victim | xargs rm",
        "find . -name victim -exec rm {} +",
        "eval rm victim",
        "sudo rm victim",
        "echo $(rm victim)",
        "r\\m victim",
        "'rm' victim",
        "{ rm victim; }",
        "if true; then rm victim; fi",
    ] {
        for approval in ["never", "on_request", "strict"] {
            let ran = project.run(&["--sandbox", "danger_full_access", "--approval", approval], command);
            assert_eq!(ran.code, 126, "{approval} {command}: {ran:?}");
            assert!(project.root().join("victim").exists(), "{command}");
        }
    }
}

#[test]
fn the_projects_own_file_only_tightens() {
    // promise: 6
    // contract: X7
    let project = Project::new();
    let loosening = "sandbox = \"danger_full_access\"\napproval = \"never\"\n\n\
                     [[rule]]\nact = \"exec\"\neffect = \"allow\"\npattern = \"*\"\n";
    project.write(".cmdgate.toml", loosening);
    let check = |command: &str| project.harness(["check", "--sandbox", "workspace_write", "--", command]);
    assert_eq!(check("npm test").code, 10);
    assert_eq!(project.harness(["check", "--", "npm test"]).code, 20);
    project.write(".cmdgate.toml", "[[rule]]\nact = \"exec\"\neffect = \"deny\"\npattern = \"cat **\"\n");
    assert_eq!(check("cat a.txt").code, 20);
}

#[test]
fn a_run_that_cannot_be_recorded_does_not_happen() {
    // promise: 12
    // contract: P12
    let project = Project::new();
    project.write_beside(
        "damaged.db",
        "this is no database, but it is long enough to be looked at as one by SQLite itself",
    );
    let damaged = project.scratch().join("damaged.db");
    let trace = damaged.to_str().unwrap();
    let ran = project.run(&[&WRITE[..], &["--trace", trace]].concat(), "touch made");
    assert_eq!(ran.code, 125, "{ran:?}");
    assert!(ran.stderr.contains("is not a cmdgate trace"), "{ran:?}");
    assert!(!project.root().join("made").exists());
    assert_eq!(std::fs::read_to_string(damaged).unwrap().len(), 82, "the damaged file is left as it was");
}

#[test]
fn refused_and_run_commands_are_one_query_each_and_a_changed_record_is_found() {
    // promise: 12
    // contract: P12
    let project = Project::new();
    assert_eq!(project.run(&[], "cat a.txt").code, 0);
    assert_eq!(project.run(&[], "rm a.txt").code, 126);
    let path = project.scratch().join("state/cmdgate/trace.db");
    let store = Store::open(&path).unwrap();
    let verified = store.verify().unwrap();
    assert_eq!(verified.faults, []);
    assert!(verified.links >= 8, "{verified:?}");
    drop(store);
    let database = std::process::Command::new("python3")
        .args(["-c", "import sqlite3,sys\nc=sqlite3.connect(sys.argv[1])\nprint(c.execute(\"select count(*) from policy_events where effect='deny' and act='exec'\").fetchone()[0], c.execute(\"select count(*) from steps where result is not null\").fetchone()[0])\nc.execute(\"update steps set tool_call='{}' where effect='deny'\")\nc.commit()"])
        .arg(&path)
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&database.stdout), "1 1\n", "{database:?}");
    assert_eq!(Store::open(&path).unwrap().verify().unwrap().faults.len(), 1);
}

#[test]
fn ten_processes_record_at_once() {
    // promise: 12
    // contract: P12
    let project = Project::new();
    let children: Vec<_> = (0..10)
        .map(|_| {
            project
                .command(["run", "--", "cat a.txt"])
                .stdout(std::process::Stdio::piped())
                .stderr(std::process::Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    for child in children {
        let ran: Ran = child.wait_with_output().unwrap().into();
        assert_eq!(ran.code, 0, "{ran:?}");
    }
    let store = Store::open(project.scratch().join("state/cmdgate/trace.db")).unwrap();
    assert_eq!(store.verify().unwrap().faults, []);
}
