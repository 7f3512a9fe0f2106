//! Approvals as a whole: deferred, answered by another process, resumed; and asked at a terminal.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use cmdgate_tests::{Project, Ran, harness_binary};
use serde_json::Value;
use std::process::{Command, Stdio};

const WRITE: [&str; 2] = ["--sandbox", "workspace_write"];

/// Asks, and gives the number of the stored question.
fn ask(project: &Project, command: &str) -> String {
    let ran = project.run(&WRITE, command);
    assert_eq!(ran.code, 126, "{ran:?}");
    let (_, rest) = ran.stderr.split_once("stored as approval ").unwrap_or_else(|| panic!("{ran:?}"));
    rest.split(':').next().unwrap().to_owned()
}

#[test]
fn a_stored_question_is_answered_and_resumed_once() {
    // contract: S17, P9
    let project = Project::new();
    let id = ask(&project, "touch made.txt");
    let list = project.harness(["approvals", "list", "--json"]).json();
    assert_eq!(list["approvals"][0]["command"], "touch made.txt");
    assert_eq!(list["approvals"][0]["decision"]["effect"], "ask");
    let show = project.harness(["approvals", "show", &id]);
    assert!(show.stdout.contains("touch made.txt") && show.stdout.contains("APPROVAL_REQUIRED"), "{show:?}");
    let early = project.harness(["approvals", "resume", &id]);
    let first = format!("approve it first with `harness approvals approve {id}`");
    assert!(early.code == 1 && early.stderr.contains(&first), "{early:?}");
    let yes = project.harness(["approvals", "approve", &id]);
    assert!(yes.code == 0 && yes.stdout.contains("approved: touch made.txt"), "{yes:?}");
    let twice = project.harness(["approvals", "approve", &id]);
    assert!(twice.code == 1 && twice.stderr.contains("answered before"), "{twice:?}");
    let ran = project.harness(["approvals", "resume", &id]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(project.root().join("made.txt").exists());
    let again = project.harness(["approvals", "resume", &id]);
    assert!(again.code == 1 && again.stderr.contains("resumed"), "{again:?}");
    let log = project.harness(["log"]).stdout;
    assert_eq!(log.matches(&format!("approved (approval {id})")).count(), 2, "{log}");
    assert_eq!(project.harness(["log", "verify"]).code, 0);
    let unknown = project.harness(["approvals", "approve", "999"]);
    assert!(unknown.code == 1 && unknown.stderr.contains("no approval 999"), "{unknown:?}");
}

#[test]
fn json_names_the_question_that_was_stored() {
    // contract: P9, S17
    let project = Project::new();
    assert_eq!(ask(&project, "touch first.txt"), "1");
    let ran = project.run(&[&WRITE[..], &["--json"]].concat(), "touch made.txt");
    let reply = ran.json();
    assert_eq!(
        (ran.code, reply["reply"].as_str(), reply["approval"].as_i64()),
        (126, Some("approval_required"), Some(2))
    );
    assert!(project.run(&["--json"], "cat a.txt").json().get("approval").is_none());
    assert!(project.run(&["--json"], "rm a.txt").json().get("approval").is_none());
}

#[test]
fn whoever_answers_is_told_what_bounds_the_command() {
    // contract: P7, P9
    let project = Project::new();
    let bounded = ask(&project, "touch made.txt");
    let free = project.run(&["--sandbox", "danger_full_access"], "touch other.txt");
    assert_eq!(free.code, 126, "{free:?}");
    let list = project.harness(["approvals", "list"]).stdout;
    let show = project.harness(["approvals", "show", &bounded]).stdout;
    for text in [&list, &show] {
        assert!(text.contains("workspace_write, network off"), "{text}");
    }
    let anything = "no sandbox: the command can do anything";
    assert!(list.contains(anything) && !show.contains(anything), "{list}{show}");
    assert!(project.harness(["approvals", "show", "2"]).stdout.contains(anything));
    assert!(project.harness(["approvals", "approve", "2"]).stdout.contains(anything));
}

#[test]
fn several_are_denied_at_once_and_a_wrong_number_is_named() {
    // contract: P9
    let project = Project::new();
    let ids = ["one", "two"].map(|name| ask(&project, &format!("touch {name}")));
    let wrong = project.harness(["approvals", "approve", "abc"]);
    assert!(wrong.code == 2 && wrong.stderr.contains("the number of an approval"), "{wrong:?}");
    let denied = project.harness(["approvals", "deny", &ids[0], "99", &ids[1]]);
    assert!(denied.code == 1 && denied.stderr.contains("no approval 99"), "{denied:?}");
    assert_eq!(denied.stdout, "denied: touch one\ndenied: touch two\n");
}

#[test]
fn a_denied_question_stays_denied() {
    // contract: P9
    let project = Project::new();
    let id = ask(&project, "touch made.txt");
    assert_eq!(project.harness(["approvals", "deny", &id, "--message", "not now"]).code, 0);
    assert_eq!(project.harness(["approvals", "approve", &id]).code, 1);
    assert_eq!(project.harness(["approvals", "resume", &id]).code, 1);
    assert!(!project.root().join("made.txt").exists());
    assert!(project.harness(["log", "--refused"]).stdout.contains("not now"));
}

#[test]
fn a_deny_that_came_meanwhile_holds() {
    // contract: P9, P3
    let project = Project::new();
    let id = ask(&project, "touch made.txt");
    assert_eq!(project.harness(["approvals", "approve", &id]).code, 0);
    project.write_beside(
        "config/cmdgate/policy.toml",
        "[[rule]]\nact = \"exec\"\neffect = \"deny\"\npattern = \"touch\"\n",
    );
    let ran = project.harness(["approvals", "resume", &id]);
    assert_eq!(ran.code, 126, "{ran:?}");
    assert!(ran.stderr.contains("policy changed") && ran.stderr.contains("touch"), "{ran:?}");
    assert!(!project.root().join("made.txt").exists());
}

#[test]
fn what_changed_since_is_named_and_needs_force() {
    // contract: P9
    let project = Project::new();
    project.write("job.sh", "echo one > out.txt\n");
    let id = ask(&project, "bash job.sh");
    assert_eq!(project.harness(["approvals", "approve", &id]).code, 0);
    project.write("job.sh", "echo two > out.txt\n");
    let ran = project.harness(["approvals", "resume", &id]);
    assert!(ran.code == 126 && ran.stderr.contains("job.sh has another content"), "{ran:?}");
    assert!(!project.root().join("out.txt").exists());
    let ran = project.harness(["approvals", "resume", &id, "--force"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(project.root().join("out.txt").exists());
}

#[test]
fn a_file_that_came_or_a_link_that_turned_meanwhile_is_named() {
    // contract: P9
    type Change = fn(&Project);
    let link = |project: &Project, to: &str| {
        let at = project.root().join("link.sh");
        let _ = std::fs::remove_file(&at);
        std::os::unix::fs::symlink(to, at).unwrap();
    };
    let project = Project::new();
    project.write("good.sh", "echo good\n");
    project.write("bad.sh", "touch out.txt\n");
    project.write("sub/inner.sh", "echo good\n");
    project.write("Makefile", "all:\n\techo good\n");
    link(&project, "good.sh");
    let rows: [(&str, Change, &str); 4] = [
        ("bash ./new.sh", |project| project.write("new.sh", "touch out.txt\n"), "new.sh is new"),
        (
            "bash ./link.sh",
            |project| {
                std::fs::remove_file(project.root().join("link.sh")).unwrap();
                std::os::unix::fs::symlink("bad.sh", project.root().join("link.sh")).unwrap();
            },
            "link.sh has another content",
        ),
        ("make all", |project| project.write("GNUmakefile", "all:\n\ttouch out.txt\n"), "GNUmakefile is new"),
        (
            "cd sub && bash ./inner.sh",
            |project| project.write("sub/inner.sh", "touch ../out.txt\n"),
            "inner.sh has another content",
        ),
    ];
    for (command, change, said) in rows {
        let id = ask(&project, command);
        assert_eq!(project.harness(["approvals", "approve", &id]).code, 0, "{command}");
        change(&project);
        let ran = project.harness(["approvals", "resume", &id]);
        assert!(ran.code == 126 && ran.stderr.contains(said), "{command}: {ran:?}");
        assert!(!project.root().join("out.txt").exists(), "{command}");
    }
}

#[test]
fn a_yes_to_a_sandboxed_run_is_none_to_another_sandbox() {
    // contract: P9
    let project = Project::new();
    let policy = |mode: &str| {
        let text = format!("sandbox = \"{mode}\"\n");
        project.write_beside("config/cmdgate/policy.toml", &text);
    };
    policy("workspace_write");
    let ran = project.run(&[], "touch ../outside/made");
    assert_eq!(ran.code, 126, "{ran:?}");
    let listed = project.harness(["approvals", "list", "--json"]).json();
    let id = listed["approvals"][0]["id"].to_string();
    assert_eq!(project.harness(["approvals", "approve", &id]).code, 0);
    policy("danger_full_access");
    let ran = project.harness(["approvals", "resume", &id]);
    assert!(ran.code == 126 && ran.stderr.contains("another sandbox"), "{ran:?}");
    assert!(!project.scratch().join("outside/made").exists());
}

#[test]
fn of_two_that_resume_at_once_one_wins() {
    // contract: P9
    let project = Project::new();
    let id = ask(&project, "mkdir once");
    assert_eq!(project.harness(["approvals", "approve", &id]).code, 0);
    let children: Vec<_> = (0..4)
        .map(|_| {
            let mut command = project.command(["approvals", "resume", &id]);
            command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
        })
        .collect();
    let codes: Vec<i32> =
        children.into_iter().map(|mut child| child.wait().unwrap().code().unwrap()).collect();
    assert_eq!(codes.iter().filter(|code| **code == 0).count(), 1, "{codes:?}");
    assert_eq!(codes.iter().filter(|code| **code == 1).count(), 3, "{codes:?}");
}

#[test]
fn a_command_with_a_secret_is_not_stored_whole_and_not_resumed() {
    // contract: P9, S19
    let project = Project::new();
    let token = format!("{}{}", "ghp_", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4");
    let id = ask(&project, &format!("touch {token}"));
    let show = project.harness(["approvals", "show", &id]);
    assert!(!show.stdout.contains(&token), "{show:?}");
    let approved = project.harness(["approvals", "approve", &id]);
    assert!(approved.code == 1 && approved.stderr.contains("secret"), "{approved:?}");
}

#[test]
fn files_that_a_command_reaches_by_its_directories_and_drivers_are_noted() {
    // contract: P9
    let project = Project::new();
    project.write("package.json", r#"{"scripts": {"test": "echo one"}}"#);
    project.write("a/b/deep.sh", "echo one\n");
    project.write("a/Makefile", "all:\n\techo one\n");
    project.write("a/package.json", "{}");
    project.write("a=b.sh", "echo one\n");
    let large = std::fs::File::create(project.root().join("large.bin")).unwrap();
    large.set_len(64 << 20).unwrap();
    let later = std::os::unix::fs::FileExt::write_at;
    for (command, changed) in [
        ("npm test", "package.json"),
        ("cd a && cd b && bash deep.sh", "a/b/deep.sh"),
        ("cd a; make", "a/Makefile"),
        ("make -C a all", "a/Makefile"),
        ("make -Ca all", "a/Makefile"),
        ("npm --prefix=a run x", "a/package.json"),
        ("npm --prefix a run x", "a/package.json"),
        ("bash -c 'cd a && make'", "a/Makefile"),
        ("bash ./a=b.sh", "a=b.sh"),
        // Beyond what is read of a file, of the same length before and after.
        ("dd if=large.bin of=copy", "large.bin"),
    ] {
        let id = ask(&project, command);
        assert_eq!(project.harness(["approvals", "approve", &id]).code, 0, "{command}");
        let path = project.root().join(changed);
        let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        if changed == "large.bin" {
            later(&file, b"x", 60 << 20).unwrap();
        } else {
            let before = std::fs::read_to_string(&path).unwrap();
            std::fs::write(&path, format!("{before}\n")).unwrap();
        }
        let said = format!("{changed} has another content");
        let show = project.harness(["approvals", "show", &id]);
        assert!(show.stdout.contains(&said), "{command}: {show:?}");
        let ran = project.harness(["approvals", "resume", &id]);
        assert!(ran.code == 126 && ran.stderr.contains(&said), "{command}: {ran:?}");
    }
    assert!(!project.root().join("copy").exists());
}

#[test]
fn files_that_a_command_may_run_without_naming_them_are_said_to_have_changed() {
    // contract: P9
    let project = Project::new();
    project.write("package.json", r#"{"scripts": {"test": "node test.js"}}"#);
    project.write("test.js", "1\n");
    let driven = ask(&project, "npm test");
    let plain = ask(&project, "touch made.txt");
    project.write("test.js", "2\n");
    // Whoever sets its time back does not hide it.
    let status =
        Command::new("touch").args(["-d", "2001-01-01", "test.js"]).current_dir(project.root()).status();
    assert!(status.unwrap().success());
    let said = "changed since it was asked: test.js, which it may run";
    let show = project.harness(["approvals", "show", &driven]).stdout;
    assert!(show.contains(said), "{show}");
    let approved = project.harness(["approvals", "approve", &driven]);
    assert!(approved.code == 0 && approved.stderr.contains(said), "{approved:?}");
    let json = project.harness(["approvals", "show", &driven, "--json"]).json();
    assert_eq!(json["changes"], serde_json::json!(["test.js, which it may run"]));
    // It is no reason to refuse: the work goes on while a question waits.
    let ran = project.harness(["approvals", "resume", &driven]);
    assert!(ran.code != 126 && ran.stderr.contains(said), "{ran:?}");
    assert!(!project.harness(["approvals", "show", &plain]).stdout.contains("changed since"));
}

/// Runs `harness run` at a pseudo-terminal and presses `keys` (Python's spelling) at its question.
fn at_terminal(project: &Project, command: &str, keys: &[&str]) -> Ran {
    typed(project, &[&["run"], &WRITE[..], &["--", command]].concat(), "", keys, None)
}

/// Runs `harness` at a pseudo-terminal: `early` is typed before anything is asked, `keys` at the question; standard output
/// goes to the file, where there is one.
fn typed(
    project: &Project,
    args: &[&str],
    early: &str,
    keys: &[&str],
    stdout: Option<&std::path::Path>,
) -> Ran {
    let script = r#"
import os, pty, select, sys, time
argv, early, keys, to = [arg.split('\x1f') for arg in sys.argv[1:]]
real = lambda key: key.encode().decode('unicode_escape').encode()
keys = [real(key) for key in keys if key]
pid, fd = pty.fork()
if pid == 0:
    os.environ['TERM'] = 'xterm'
    if to[0]:
        os.dup2(os.open(to[0], os.O_WRONLY | os.O_CREAT), 1)
    os.execv(argv[0], argv)
os.write(fd, real(early[0]))
out, asked, end = b'', 0, time.time() + 60
while time.time() < end:
    ready, _, _ = select.select([fd], [], [], 0.2)
    if ready:
        try:
            data = os.read(fd, 65536)
        except OSError:
            break
        if not data:
            break
        out += data
    elif keys and (b'Run it?' in out):
        os.write(fd, keys.pop(0))
_, status = os.waitpid(pid, 0)
sys.stdout.buffer.write(out)
sys.exit(os.waitstatus_to_exitcode(status))
"#;
    let argv = [&[harness_binary().to_str().unwrap()], args].concat();
    let to = stdout.map_or("", |path| path.to_str().unwrap());
    let mut python = Command::new("python3");
    python
        .args(["-c", script, &argv.join("\x1f"), early, &keys.join("\x1f"), to])
        .current_dir(project.root());
    for (name, value) in project.command([""; 0]).get_envs() {
        if let Some(value) = value {
            python.env(name, value);
        }
    }
    python.output().unwrap().into()
}

const DOWN: &str = "\\x1b[B";
const ENTER: &str = "\\r";

#[test]
fn a_person_at_the_terminal_is_asked() {
    // contract: P7, S17
    let project = Project::new();
    let no = at_terminal(&project, "touch a-file", &[ENTER]);
    assert!(no.code == 126 && no.stdout.contains("runs: touch a-file"), "{no:?}");
    assert!(!project.root().join("a-file").exists());
    let once = at_terminal(&project, "touch a-file", &[DOWN, ENTER]);
    assert_eq!(once.code, 0, "{once:?}");
    assert!(project.root().join("a-file").exists());
    assert!(project.harness(["rules", "list"]).stdout.contains("no rules"));
    // The last line: no, with a message.
    let message = at_terminal(&project, "touch other", &["\\x1b[A", ENTER, "use src", ENTER]);
    assert!(message.code == 126, "{message:?}");
    assert!(project.harness(["log", "--refused"]).stdout.contains("use src"));
}

#[test]
fn letters_move_and_enter_chooses_and_nothing_typed_before_counts() {
    // contract: P7
    let project = Project::new();
    let made = |name: &str| project.root().join(name).exists();
    for (name, keys, yes) in [
        ("y", &["y", ENTER][..], true),
        ("yes", &["yes", ENTER], true),
        ("yes-at-once", &["yes\\r"], true),
        ("n", &["n", ENTER], false),
        ("no", &["no", ENTER], false),
        ("not-yes", &["y", "n", ENTER], false),
        ("unknown", &["x", ENTER], false),
        ("escape", &["y", "\\x1b"], false),
        ("interrupted", &["y", "\\x03"], false),
    ] {
        let ran = at_terminal(&project, &format!("touch {name}"), keys);
        assert_eq!((ran.code == 0, made(name)), (yes, yes), "{name}: {ran:?}");
        // The cursor is there again.
        assert!(ran.stdout.rfind("\u{1b}[?25h") > ran.stdout.rfind("\u{1b}[?25l"), "{name}: {ran:?}");
    }
    assert!(project.harness(["rules", "list"]).stdout.contains("no rules"));
    let run = [&["run"], &WRITE[..], &["--", "touch early"]].concat();
    let early = typed(&project, &run, "y\\ryes\\r", &[ENTER], None);
    assert!(early.code == 126 && !made("early"), "{early:?}");
    let always = at_terminal(&project, "touch kept", &["a", ENTER, "all-", ENTER]);
    assert!(always.code == 0 && made("kept"), "{always:?}");
    let rules = project.harness(["rules", "list", "--json"]).json();
    assert_eq!(
        (&rules["rules"][0]["pattern"], &rules["rules"][0]["project"]),
        (&"touch kept".into(), &Value::Null)
    );
    assert!(rules["rules"][0]["expires"].is_string(), "{rules}");
    let message = at_terminal(&project, "touch other", &["m", ENTER, "use src", ENTER]);
    assert!(
        message.code == 126 && project.harness(["log", "--refused"]).stdout.contains("use src"),
        "{message:?}"
    );
}

#[test]
fn the_command_can_be_changed_before_it_is_approved_and_is_decided_anew() {
    // contract: P7
    let project = Project::new();
    project.write_beside(
        "config/cmdgate/policy.toml",
        "[[rule]]\nact = \"exec\"\neffect = \"deny\"\npattern = \"rm **\"\n",
    );
    let made = |name: &str| project.root().join(name).exists();
    let ran = at_terminal(&project, "touch one", &["e", ENTER, "-two", ENTER, "y", ENTER]);
    assert!(ran.code == 0 && made("one-two") && !made("one"), "{ran:?}");
    assert!(
        ran.stdout.contains("changed to: touch one-two") && ran.stdout.contains("Command: touch one-two"),
        "{ran:?}"
    );
    let log = project.harness(["log", "--json"]).json();
    let step = log["steps"].as_array().unwrap().last().unwrap().clone();
    assert_eq!((&step["command"], &step["status"]), (&"touch one".into(), &"approved".into()), "{step}");
    assert_eq!(step["answer_reason"], "changed to: touch one-two", "{step}");
    // Changed, and then not approved after all.
    let no = at_terminal(&project, "touch three", &["e", ENTER, "-four", ENTER, ENTER]);
    assert!(no.code == 126 && !made("three") && !made("three-four"), "{no:?}");
    // A deny holds for what it was changed to.
    let denied = at_terminal(&project, "touch five", &["e", ENTER, "; rm a.txt", ENTER, "y", ENTER]);
    assert!(denied.code == 126 && made("a.txt") && !made("five"), "{denied:?}");
    // The rule that was shown was about what was asked, so it is not offered for another command.
    let changed = denied.stdout.split("changed to:").nth(1).unwrap();
    assert!(changed.contains("run it once") && !changed.contains("always"), "{changed}");
    // An argument list stays one.
    let exec = |keys: &[&str]| {
        typed(&project, &[&["exec"], &WRITE[..], &["--", "touch", "a b"]].concat(), "", keys, None)
    };
    let ran = exec(&["e", ENTER, " 'c d'", ENTER, "y", ENTER]);
    assert!(ran.code == 0 && made("a b") && made("c d"), "{ran:?}");
    let ran = exec(&["e", ENTER, " && touch e", ENTER, "n", ENTER]);
    assert!(ran.code == 126 && ran.stdout.contains("not changed: write one program"), "{ran:?}");
    assert_eq!(project.harness(["log", "verify"]).code, 0);
}

#[test]
fn with_json_the_question_is_at_the_terminal_and_the_answer_in_the_output() {
    // contract: P7, S17
    let project = Project::new();
    let out = project.scratch().join("out.json");
    let run = [&["run", "--json"], &WRITE[..], &["--", "touch made.txt"]].concat();
    for (keys, code, reply) in [(&[ENTER][..], 126, "refused"), (&["y", ENTER], 0, "ran")] {
        let ran = typed(&project, &run, "", keys, Some(&out));
        assert!(ran.code == code && ran.stdout.contains("Run it?"), "{ran:?}");
        let printed = std::fs::read_to_string(&out).unwrap();
        let json: Value = serde_json::from_str(&printed).unwrap_or_else(|error| panic!("{error}: {printed}"));
        assert_eq!(json["reply"], reply, "{printed}");
        assert_eq!(project.root().join("made.txt").exists(), reply == "ran");
        std::fs::remove_file(&out).unwrap();
    }
}

#[test]
fn always_writes_exactly_the_rule_that_was_shown() {
    // contract: P7
    let project = Project::new();
    let always = at_terminal(&project, "touch kept", &[DOWN, DOWN, DOWN, ENTER, ENTER]);
    assert!(always.code == 0 && always.stdout.contains("allow exec `touch kept`"), "{always:?}");
    assert!(always.stdout.contains("sandbox: workspace_write, network off"), "{always:?}");
    let rules = project.harness(["rules", "list", "--json"]).json();
    assert_eq!(rules["rules"][0]["pattern"], "touch kept");
    assert_eq!(rules["rules"][0]["project"], project.root().to_str().unwrap());
    assert_eq!(project.run(&WRITE, "touch kept").code, 0, "the rule counts from now on");
    for other in ["touch kept2", "touch kept more", "'touch kept'"] {
        assert_eq!(project.run(&WRITE, other).code, 126, "and for nothing else: {other}");
    }
    assert_eq!(project.harness(["policy", "lint"]).code, 0);
    assert_eq!(project.harness(["rules", "remove", "1"]).code, 0);
    assert_eq!(project.run(&WRITE, "touch kept").code, 126);
    let never = at_terminal(&project, "bash -c 'touch x'", &[ENTER]);
    assert!(never.stdout.contains("only once") && !never.stdout.contains("always"), "{never:?}");
}

#[test]
fn a_rule_for_all_projects_counts_in_all_of_them() {
    // contract: P7
    let project = Project::new();
    let keys = [DOWN, DOWN, DOWN, ENTER, DOWN, DOWN, ENTER];
    let always = at_terminal(&project, "touch kept", &keys);
    assert!(always.code == 0 && always.stdout.contains("in all projects"), "{always:?}");
    let rules = project.harness(["rules", "list", "--json"]).json();
    assert_eq!(
        (&rules["rules"][0]["pattern"], &rules["rules"][0]["project"]),
        (&"touch kept".into(), &Value::Null)
    );
    let other = project.scratch().join("other");
    std::fs::create_dir(&other).unwrap();
    let there = |command: &str| -> Ran {
        let args = [&["run"][..], &WRITE, &["--root", ".", "--", command]].concat();
        project.command(args).current_dir(&other).output().unwrap().into()
    };
    assert_eq!(there("touch kept").code, 0);
    assert!(other.join("kept").exists());
    assert_eq!(there("touch else").code, 126);
    let rules = project.harness(["rules", "list"]).stdout;
    assert!(rules.contains("everywhere") && rules.contains("until "), "{rules}");
}

#[test]
fn a_rule_for_one_project_counts_nowhere_else_and_ends_in_time() {
    // contract: P7
    let project = Project::new();
    let keys = [DOWN, DOWN, DOWN, ENTER, DOWN, ENTER];
    let always = at_terminal(&project, "touch kept", &keys);
    assert!(always.code == 0 && always.stdout.contains("for 30 days"), "{always:?}");
    let rules = project.harness(["rules", "list", "--json"]).json();
    let expires: jiff::Timestamp = rules["rules"][0]["expires"].as_str().unwrap().parse().unwrap();
    let days = expires.duration_since(jiff::Timestamp::now()).as_hours() / 24;
    assert!((29..=30).contains(&days), "{rules}");
    let other = project.scratch().join("other");
    std::fs::create_dir(&other).unwrap();
    let args = [&["run"][..], &WRITE, &["--root", ".", "--", "touch kept"]].concat();
    let elsewhere: Ran = project.command(args).current_dir(&other).output().unwrap().into();
    assert_eq!(elsewhere.code, 126, "{elsewhere:?}");
    // The time comes: brought forward in the file that a person can change.
    let file = project.scratch().join("config/cmdgate/remembered.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    let ends = |at: jiff::Timestamp| {
        let line = text.lines().find(|line| line.starts_with("expires")).unwrap();
        std::fs::write(&file, text.replace(line, &format!("expires = \"{at:.0}\""))).unwrap();
    };
    ends(jiff::Timestamp::now() + jiff::SignedDuration::from_secs(60));
    assert_eq!(project.run(&WRITE, "touch kept").code, 0);
    ends(jiff::Timestamp::now() - jiff::SignedDuration::from_secs(60));
    let late = project.run(&WRITE, "touch kept");
    assert_eq!(late.code, 126, "{late:?}");
    assert!(project.harness(["rules", "list"]).stdout.contains("no more, since"));
    let wrong = project.harness(["rules", "remove", "zero"]);
    assert!(wrong.code == 2 && wrong.stderr.contains("the number of a rule"), "{wrong:?}");
    let lint = project.harness(["policy", "lint"]);
    assert!(lint.stdout.contains("expired"), "{lint:?}");
    // The same rule can be given again.
    assert_eq!(at_terminal(&project, "touch kept", &[DOWN, DOWN, DOWN, ENTER, ENTER]).code, 0);
    assert_eq!(project.run(&WRITE, "touch kept").code, 0);
}

#[test]
fn an_approval_whose_project_or_directory_is_gone_is_not_resumed() {
    // contract: P9
    let project = Project::new();
    project.write("sub/x", "");
    let in_sub = [&WRITE[..], &["--workdir", "sub"]].concat();
    let ran = project.run(&in_sub, "touch made.txt");
    assert!(ran.code == 126 && ran.stderr.contains("approval 1"), "{ran:?}");
    let id = ask(&project, "touch other.txt");
    for id in ["1", &id] {
        assert_eq!(project.harness(["approvals", "approve", id]).code, 0);
    }
    let resume = |id: &str, more: &[&str]| -> Ran {
        let args = [&["approvals", "resume", id][..], more].concat();
        project.command(args).current_dir(project.scratch()).output().unwrap().into()
    };
    std::fs::remove_dir_all(project.root().join("sub")).unwrap();
    let ran = resume("1", &[]);
    assert!(ran.code == 126 && ran.stderr.contains("working directory"), "{ran:?}");
    assert_ne!(resume("1", &["--force"]).code, 0);
    assert!(!project.root().join("made.txt").exists());
    std::fs::rename(project.root(), project.scratch().join("moved")).unwrap();
    for more in [&[][..], &["--force"]] {
        let ran = resume(&id, more);
        assert!(ran.code == 126 && ran.stderr.contains("is gone"), "{ran:?}");
    }
    assert!(!project.scratch().join("moved/other.txt").exists());
}
