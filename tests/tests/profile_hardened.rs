//! The hardened profile, row by row, in the spellings that an adversary would choose.

use cmdgate_tests::{Project, Ran};
use std::os::unix::fs::symlink;
use std::time::Instant;

const HARDENED: [&str; 2] = ["--profile", "hardened"];

fn run(project: &Project, command: &str) -> Ran {
    project.run(&HARDENED, command)
}

fn effect(project: &Project, command: &str) -> String {
    let decided = project.harness(["check", "--json", "--profile", "hardened", "--", command]).json();
    decided["effect"].as_str().unwrap().to_owned()
}

fn assert_all(project: &Project, expected: &str, commands: &[&str]) {
    for command in commands {
        assert_eq!(effect(project, command), expected, "{command}");
    }
}

// contract: H1
#[test]
fn only_listed_programs_run_and_nobody_is_asked() {
    let project = Project::new();
    assert_all(
        &project,
        "allow",
        &[
            "ls",
            "ls -la src",
            "find . -name '*.py'",
            "stat a.txt",
            "file a.txt",
            "du -s .",
            "wc -l a.txt",
            "head -1 a.txt",
            "tail -1 a.txt",
            "cat a.txt",
            "grep alpha a.txt",
            "rg alpha",
            "jq . x.json",
            "awk '{print $1}' a.txt",
            "sed -n 1p a.txt",
            "python3 --version",
            "node --version",
            "cargo --version",
            "tree",
            "tokei",
            "cloc .",
            "scc",
        ],
    );
    assert_all(
        &project,
        "deny",
        &[
            "rm a.txt",
            "curl example.com",
            "npm test",
            "bash x.sh",
            "sh -c ls",
            "perl -v",
            "touch made",
            "mv a.txt b",
            "sudo ls",
            "ssh host",
            "./ls",
            "/tmp/ls",
            "src/cat a.txt",
            "docker ps",
            "nohup ls",
            "timeout 5 rm a.txt",
            // Known to be harmless elsewhere, and not on the list.
            "nproc",
            "uptime",
            "column a.txt",
            "seq 3",
            "cksum a.txt",
            "env rm a.txt",
            "xargs rm",
            "find . -exec rm {} +",
        ],
    );
}

// contract: H1
#[test]
fn its_rows_can_be_printed_changed_and_used() {
    let project = Project::new();
    let printed = project.harness(["policy", "profile", "hardened"]);
    assert!(printed.code == 0 && printed.stdout.contains("name = \"tokei\""), "{printed:?}");
    let more = "\n[[program]]\nname = \"seq\"\npurpose = \"counts\"\n";
    // With its name, the file stands on the built-in rows and can only tighten.
    project.write_beside("named.toml", &format!("{}{more}", printed.stdout));
    let named = project.scratch().join("named.toml");
    let decided = project.harness(["check", "--json", "--policy", named.to_str().unwrap(), "--", "seq 3"]);
    assert_eq!(decided.json()["effect"], "deny", "{decided:?}");
    let changed = format!("{}{more}", printed.stdout.replace("\nprofile = \"hardened\"\n", "\n"));
    assert!(changed.len() < printed.stdout.len() + more.len());
    project.write_beside("mine.toml", &changed);
    let mine = project.scratch().join("mine.toml");
    let mine = mine.to_str().unwrap();
    assert_eq!(project.harness(["policy", "test", mine]).code, 0);
    for (command, expected) in
        [("seq 3", "allow"), ("ls", "allow"), ("rm a.txt", "deny"), ("npm test", "deny")]
    {
        let decided = project.harness(["check", "--json", "--policy", mine, "--", command]);
        assert_eq!(decided.json()["effect"], expected, "{command}: {decided:?}");
    }
    assert!(project.harness(["policy", "profile", "default"]).stdout.contains("builtin-secrets"));
}

// contract: H1
#[test]
fn git_reads_and_does_nothing_else() {
    let project = Project::new();
    assert_all(
        &project,
        "allow",
        &[
            "git log",
            "git log --oneline -3",
            "git diff",
            "git show HEAD",
            "git blame a.txt",
            "git status",
            "git branch",
            "git tag",
            "git rev-parse HEAD",
            "git rev-list HEAD",
            "git shortlog HEAD",
            "git ls-files",
            "git ls-tree HEAD",
            "git config --get user.name",
            "git config --list",
        ],
    );
    assert_all(
        &project,
        "deny",
        &[
            "git push",
            "git  push",
            "git 'push'",
            "git pu''sh",
            "git commit -m x",
            "git checkout main",
            "git reset --hard",
            "git branch new",
            "git branch -D main",
            "git tag new",
            "git config user.name x",
            "git config --unset user.name",
            "git config --get user.name --unset",
            "git -c alias.log='!id' log",
            "git -C /tmp log",
            "git --exec-path=/tmp log",
            "git -p log",
            "git diff --output=x",
            "git diff --outp x",
            "git log --ext-diff",
            "git grep -Ovi x",
            "git fetch",
            "git clone x",
            "git stash",
            "git gc",
            "git remote add x y",
            "git remote update",
            "git reflog expire --all",
            "git worktree add x",
        ],
    );
}

// contract: H2
#[test]
fn every_construct_is_blocked_in_every_spelling_and_none_when_quoted() {
    let project = Project::new();
    assert_all(
        &project,
        "deny",
        &[
            "ls; ls",
            "ls;ls",
            "ls ;",
            "ls & ls",
            "ls &",
            "ls && ls",
            "ls || ls",
            "ls | wc",
            "ls|wc",
            "ls |& wc",
            "ls\nls",
            "ls `id`",
            "echo \"`id`\"",
            "ls $(id)",
            "echo \"$(id)\"",
            "echo \"a$(id)b\"",
            "ls ${HOME}",
            "echo \"${HOME}\"",
            "ls $((1+1))",
            "ls <(id)",
            "eval ls",
            "eval 'ls'",
            "e''val ls",
            "\\eval ls",
            "'eval' ls",
            "exec ls",
            "ex\"\"ec ls",
            "source a.txt",
            "sou\\rce a.txt",
            ". a.txt",
            ". ./a.txt",
            "'.' a.txt",
            "ls > x",
            "ls >x",
            "ls >> x",
            "ls 2> x",
            "ls 1>x",
            "ls &> x",
            "ls >| x",
            "ls <> x",
            ">x",
            ">x ls",
            "ls >\"x\"",
            "{ ls; }",
            "(ls)",
            "! ls",
            "time ls",
            "if ls; then ls; fi",
            "for x in a; do ls; done",
            "while ls; do ls; done",
            "f() { ls; }",
            "builtin eval ls",
            "command eval ls",
            "cat <<< x",
            "cat << x\nx",
        ],
    );
    assert_all(
        &project,
        "allow",
        &[
            "echo 'a;b'",
            "echo \"a;b\"",
            "echo 'a & b && c'",
            "echo 'a | b'",
            "grep 'a|b' a.txt",
            "echo '`id`'",
            "echo '$(id)'",
            "echo '${HOME}'",
            "echo 'a > b >> c'",
            "grep -e '->' a.txt",
            "echo eval exec source",
            "grep 'eval(' a.txt",
            "git log --grep='fix; then'",
        ],
    );
    assert!(!project.root().join("x").exists());
}

// contract: H3
#[test]
fn the_systems_folders_are_closed_in_every_spelling() {
    let project = Project::new();
    let up = "../".repeat(16);
    symlink("/etc", project.root().join("link")).unwrap();
    symlink("/etc/passwd", project.root().join("deep")).unwrap();
    symlink("link", project.root().join("chain")).unwrap();
    let up_path = format!("cat {up}etc/passwd");
    let with_flag = format!("grep -f{up}etc/passwd a.txt");
    for command in [
        "cat /etc/passwd",
        "cat //etc/passwd",
        "cat /etc/../etc/passwd",
        "cat /./etc/passwd",
        "cat /usr/../etc/passwd",
        "cat '/etc/passwd'",
        "cat /e''tc/passwd",
        "cat /e\\tc/passwd",
        "ls /etc",
        "ls /etc/",
        "ls -la /root",
        "ls /boot",
        "ls /usr/sbin",
        "cat /proc/self/environ",
        "cat /proc/1/cmdline",
        "ls /sys",
        "ls /proc/self/root/etc",
        "cat link/passwd",
        "cat ./link/passwd",
        "cat deep",
        "cat chain/passwd",
        "ls link",
        "cat src/../link/passwd",
        "find /etc -name x",
        "grep -r x /etc",
        "grep -f/etc/passwd a.txt",
        "grep --file=/etc/passwd a.txt",
        "wc --files0-from=/etc/passwd",
        "awk 1 /etc/passwd",
        "sed -n p /etc/passwd",
        "sed -n p deep",
        "git diff --no-index a.txt /etc/passwd",
        "diff a.txt /etc/passwd",
        "python3 /etc/x.py",
        "cat /et[c]/passwd",
        "cat /e?c/passwd",
        "cat /{etc,x}/passwd",
        "cat a.txt /etc/passwd",
        up_path.as_str(),
        with_flag.as_str(),
    ] {
        assert_eq!(effect(&project, command), "deny", "{command}");
    }
    // A program that computes the path instead of naming it meets no rule; the words above are what can be seen.
    assert_all(&project, "allow", &["cat a.txt", "ls src", "grep etc a.txt", "echo etc"]);
    let passwd = std::fs::read_to_string("/etc/passwd").unwrap();
    let first = passwd.lines().next().unwrap();
    let ran = project.harness(["run", "--profile", "hardened", "--", "cat /e*c/passwd"]);
    assert!(!ran.stdout.contains(first), "{ran:?}");
}

// contract: H4
#[test]
fn what_can_run_anything_runs_in_the_read_only_sandbox_without_network_or_not_at_all() {
    let project = Project::new();
    let outside = project.scratch().join("outside/made");
    let outside = outside.to_str().unwrap();
    for command in [
        "python3 -c \"open('made','w')\"".to_owned(),
        format!("python3 -c \"open('{outside}','w')\""),
        "awk 'BEGIN{print 1 >\"made\"}'".to_owned(),
        "awk 'BEGIN{system(\"touch made\")}'".to_owned(),
        "sed -n 'w made' a.txt".to_owned(),
        "sed -i s/a/b/ a.txt".to_owned(),
        "find . -name a.txt -delete".to_owned(),
        "node -e \"require('fs').writeFileSync('made','x')\"".to_owned(),
    ] {
        for options in [&[][..], &["--sandbox", "workspace_write"], &["--sandbox", "danger_full_access"]] {
            let ran = project.run(&[&HARDENED[..], options].concat(), &command);
            assert!(!project.root().join("made").exists(), "{command} {options:?}: {ran:?}");
            assert!(!std::path::Path::new(outside).exists(), "{command} {options:?}: {ran:?}");
        }
    }
    assert_eq!(std::fs::read_to_string(project.root().join("a.txt")).unwrap(), "gamma\nalpha\nbeta\n");
    // They do run.
    let ran = run(&project, "python3 -c 'print(6 * 7)'");
    assert!(ran.code == 0 && ran.stdout.contains("42"), "{ran:?}");
    let ran =
        project.harness(["run", "--json", "--profile", "hardened", "--", "node -e 'console.log(6 * 7)'"]);
    assert!(ran.code == 0 && ran.stdout.contains("42") && ran.stdout.contains("read_only"), "{ran:?}");
    // A listener on this machine is not reached, not even where a policy of the user lists its host.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    project.write_beside("net.toml", "[network]\nallow_domains = [\"127.0.0.1\", \"localhost\"]\n");
    let policy = project.scratch().join("net.toml");
    let connect = format!("python3 -c \"import socket; socket.create_connection(('127.0.0.1', {port}), 3)\"");
    for options in [&[][..], &["--policy", policy.to_str().unwrap()]] {
        let ran = project.run(&[&HARDENED[..], options].concat(), &connect);
        assert_ne!(ran.code, 0, "{options:?}: {ran:?}");
    }
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err(), "something connected");
}

// contract: H4
#[test]
fn a_program_for_the_sandbox_alone_is_denied_where_the_sandbox_is_another() {
    let project = Project::new();
    project.write_beside(
        "own.toml",
        "sandbox = \"workspace_write\"\n[[program]]\nname = \"python3\"\npurpose = \"x\"\nonly_in_sandbox = true\n",
    );
    let own = project.scratch().join("own.toml");
    let own = own.to_str().unwrap();
    let check = |options: &[&str]| {
        let args = [&["check", "--json", "--policy", own], options, &["--", "python3 x.py"]].concat();
        project.harness(args).json()["effect"].clone()
    };
    assert_eq!(check(&[]), "deny");
    assert_eq!(check(&["--sandbox", "read_only"]), "allow");
    project.write_beside("net.toml", "[network]\nallow_domains = [\"example.com\"]\n");
    let net = project.scratch().join("net.toml");
    assert_eq!(check(&["--sandbox", "read_only", "--policy", net.to_str().unwrap()]), "deny");
}

// contract: H5
#[test]
fn time_and_output_are_those_of_the_profile() {
    let project = Project::new();
    let ran = run(&project, "python3 -c \"print('x' * 99999)\"");
    assert!(ran.code == 0 && !ran.stdout.contains("truncated"), "{}", ran.stdout.len());
    let ran = run(&project, "python3 -c \"print('x' * 100001)\"");
    assert!(ran.stdout.contains("truncated to 100000 characters"), "{}", ran.stdout.len());
    // Longer than the 10 seconds that a shell command has elsewhere, and up to 900 may be asked for.
    let begun = Instant::now();
    let ran = run(&project, "python3 -c 'import time; time.sleep(11); print(1)'");
    assert!(ran.code == 0 && begun.elapsed().as_secs() >= 11, "{ran:?}");
    let timed = |millis: &str| project.run(&["--profile", "hardened", "--timeout-ms", millis], "ls");
    assert_eq!(timed("900000").code, 0);
    assert_eq!(timed("900001").code, 2);
    assert_eq!(project.run(&["--timeout-ms", "60001"], "ls").code, 2);
    let ran = project
        .run(&["--profile", "hardened", "--timeout-ms", "1000"], "python3 -c 'import time; time.sleep(9)'");
    assert_eq!(ran.code, 124, "{ran:?}");
}

// contract: H5
#[test]
fn a_list_of_commands_stops_at_the_first_failure_unless_told_to_go_on() {
    let project = Project::new();
    project.write_beside("list", "echo one\n\ngit push\necho two\n");
    let list = project.scratch().join("list");
    let list = list.to_str().unwrap();
    let run = |options: &[&str]| project.harness([&["run", "--json"], options, &["--each", list]].concat());
    let replies = |ran: &Ran| {
        ran.stdout
            .lines()
            .map(|line| {
                let reply: serde_json::Value = serde_json::from_str(line).unwrap();
                format!("{} {}", reply["command"].as_str().unwrap(), reply["reply"].as_str().unwrap())
            })
            .collect::<Vec<_>>()
    };
    let ran = run(&HARDENED);
    assert_eq!((replies(&ran), ran.code), (vec!["echo one ran".into(), "git push refused".into()], 126));
    let ran = run(&["--profile", "hardened", "--keep-going"]);
    let all = vec!["echo one ran".to_owned(), "git push refused".into(), "echo two ran".into()];
    assert_eq!((replies(&ran), ran.code), (all, 126));
    // A command that runs and fails is a failure, too.
    project.write_beside("list", "false\necho two\n");
    let ran = run(&HARDENED);
    assert_eq!((replies(&ran), ran.code), (vec!["false ran".to_owned()], 1));
    project.write_beside("list", "true\necho two\n");
    let ran = run(&HARDENED);
    assert_eq!((replies(&ran).len(), ran.code), (2, 0));
    // All are steps of one run.
    let connection = rusqlite::Connection::open(project.scratch().join("state/cmdgate/trace.db")).unwrap();
    let last: i64 = connection
        .query_row("SELECT count(*) FROM steps WHERE run_id = (SELECT max(id) FROM runs)", [], |row| {
            row.get(0)
        })
        .unwrap();
    assert_eq!(last, 2);
    assert_eq!(project.harness(["run", "--each", "/no/such/list"]).code, 2);
    assert_eq!(project.harness(["run", "--each", list, "--", "ls"]).code, 2);
}

// contract: H6
#[test]
fn a_command_that_a_tool_would_have_done_runs_with_a_hint_unless_hints_are_off() {
    let project = Project::new();
    for command in ["cat a.txt", "grep alpha a.txt", "head -1 a.txt", "tail -1 a.txt"] {
        let ran = run(&project, command);
        assert_eq!(ran.code, 0, "{command}: {ran:?}");
        let program = command.split(' ').next().unwrap();
        assert!(ran.stdout.contains("[hint: ") && ran.stdout.contains(program), "{command}: {ran:?}");
    }
    let json = project.harness(["run", "--json", "--profile", "hardened", "--", "cat a.txt"]).json();
    let hint = json["hint"].as_str().unwrap();
    // The command line has no such tool, so that it is not said to be there.
    assert!(hint.contains("`read_file` where it is offered") && hint.ends_with("instead of `cat`"), "{json}");
    assert!(!run(&project, "git log").stdout.contains("hint:"));
    assert!(!project.run(&[], "cat a.txt").stdout.contains("hint:"), "the default profile gives none");
    project.write_beside("off.toml", "hints = false\n");
    let off = project.scratch().join("off.toml");
    let ran = project.run(&["--profile", "hardened", "--policy", off.to_str().unwrap()], "cat a.txt");
    assert!(ran.code == 0 && !ran.stdout.contains("hint:"), "{ran:?}");
}
