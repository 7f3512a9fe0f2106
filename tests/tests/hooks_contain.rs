//! `harness hook <agent> --contain`: whatever the agent runs, it runs inside the sandbox.

use cmdgate_harness::hook::{Agent, Taken};
use cmdgate_tests::{Project, Ran, start_hook};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};

const ASK_ABOUT_TOUCH: &str =
    "[[rule]]\nact = \"exec\"\neffect = \"ask\"\npattern = \"touch **\"\nreason = \"look first\"\n";

fn send(project: &Project, agent: Agent, payload: &Value) -> (Taken, Ran) {
    let mut child = start_hook(&mut project.command(["hook", agent.name(), "--contain"]));
    child.stdin.take().unwrap().write_all(payload.to_string().as_bytes()).unwrap();
    let ran: Ran = child.wait_with_output().unwrap().into();
    (agent.takes(agent.first_event(), &ran.stdout, Some(ran.code)), ran)
}

fn ask(project: &Project, agent: Agent, command: &str) -> (Taken, Ran) {
    send(project, agent, &agent.payload(command, &project.root()))
}

/// The command that the answer puts in the place of the one that was asked about.
fn rewritten(agent: Agent, ran: &Ran) -> String {
    let pointer = match agent {
        Agent::ClaudeCode | Agent::Codex => "/hookSpecificOutput/updatedInput/command",
        Agent::Gemini => "/hookSpecificOutput/tool_input/command",
        Agent::Copilot => "/modifiedArgs/command",
        Agent::Opencode => "/args/command",
        Agent::Cline => "/overrideInput/commands/0",
        Agent::Cursor | Agent::Windsurf | Agent::Goose => panic!("it takes none"),
    };
    let command = ran.json().pointer(pointer).and_then(|command| command.as_str().map(ToOwned::to_owned));
    command.unwrap_or_else(|| panic!("{agent:?} {ran:?}"))
}

/// A shell as the agent would start it.
fn shell(project: &Project, line: &str) -> Command {
    let mut command = Command::new("bash");
    command
        .args(["-c", line])
        .current_dir(project.root())
        .env("HOME", project.home())
        .env("XDG_STATE_HOME", project.scratch().join("state"))
        .env("XDG_CONFIG_HOME", project.scratch().join("config"))
        .stdin(Stdio::null());
    command
}

fn run(project: &Project, line: &str) -> Ran {
    shell(project, line).output().unwrap().into()
}

/// The contained form of a command that nobody is asked about.
fn contained(project: &Project, command: &str) -> String {
    let (taken, ran) = ask(project, Agent::ClaudeCode, command);
    assert_eq!(taken, Taken::Rewrite, "{ran:?}");
    rewritten(Agent::ClaudeCode, &ran)
}

#[test]
fn an_agent_that_takes_no_other_command_gets_nothing_past_it() {
    // contract: X6
    let project = Project::new();
    for agent in Agent::ALL.into_iter().filter(|agent| !agent.rewrites()) {
        for command in ["touch made", "cat a.txt", "npm test", "git status"] {
            let (taken, ran) = ask(&project, agent, command);
            assert_eq!(taken, Taken::Deny, "{agent:?} {command}: {ran:?}");
        }
        let ran = project.harness(["install", agent.name(), "--contain"]);
        assert_eq!(ran.code, 2, "{ran:?}");
        assert!(ran.stderr.contains("--contain"), "{ran:?}");
    }
    // What stands in the way of another is said before it fails.
    let ran = project.harness(["install", "codex", "--contain"]);
    assert!(ran.code == 0 && ran.stdout.contains("sandbox_mode"), "{ran:?}");
}

#[test]
fn what_a_person_says_yes_to_runs_in_the_sandbox_once() {
    let project = Project::new();
    project.write_beside("config/cmdgate/policy.toml", ASK_ABOUT_TOUCH);
    for agent in Agent::ALL.into_iter().filter(|agent| agent.asks_about_rewrites()) {
        let made = format!("made-{}", agent.name());
        let (taken, ran) = ask(&project, agent, &format!("touch {made} ../escaped && echo done"));
        assert_eq!(taken, Taken::AskRewrite, "{agent:?} {ran:?}");
        let line = rewritten(agent, &ran);
        let ran = run(&project, &line);
        assert_eq!((ran.code, ran.stdout.as_str()), (0, "done\n"), "{line}: {ran:?}");
        assert!(project.root().join(&made).exists(), "{ran:?}");
        // It lies in a /tmp of its own.
        assert!(!project.scratch().join("escaped").exists());
        std::fs::remove_file(project.root().join(&made)).unwrap();
        let again = run(&project, &line);
        assert_eq!(again.code, 126, "{again:?}");
        assert!(!project.root().join(&made).exists());
        // Nor does it serve another command or another directory.
        let (_, ran) = ask(&project, agent, "touch other");
        let line = rewritten(agent, &ran);
        assert_eq!(run(&project, &line.replace("touch other", "touch third")).code, 126);
        let src = project.root().join("src");
        let moved = line.replace(
            &format!("--workdir {}", project.root().display()),
            &format!("--workdir {}", src.display()),
        );
        assert_ne!(moved, line);
        assert_eq!(run(&project, &moved).code, 126);
        assert_eq!(run(&project, &line).code, 0);
        std::fs::remove_file(project.root().join("other")).unwrap();
    }
}

#[test]
fn a_yes_is_none_to_a_script_that_changed_before_it_ran() {
    // contract: P9
    let project = Project::new();
    project.write_beside(
        "config/cmdgate/policy.toml",
        "[[rule]]\nact = \"exec\"\neffect = \"ask\"\npattern = \"bash **\"\n",
    );
    let agent = Agent::ALL.into_iter().find(|agent| agent.asks_about_rewrites()).unwrap();
    project.write("job.sh", "echo one\n");
    let line = |project: &Project| {
        let (taken, ran) = ask(project, agent, "bash job.sh");
        assert_eq!(taken, Taken::AskRewrite, "{ran:?}");
        rewritten(agent, &ran)
    };
    let (before, unchanged) = (line(&project), line(&project));
    let ran = run(&project, &unchanged);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "one\n"), "{ran:?}");
    project.write("job.sh", "touch made\n");
    let ran = run(&project, &before);
    assert!(ran.code == 126 && ran.stderr.contains("other contents of its files"), "{ran:?}");
    assert!(!project.root().join("made").exists());
}

#[test]
fn an_agent_that_cannot_ask_about_it_refuses_with_a_code_and_then_contains_it() {
    let project = Project::new();
    project.write_beside("config/cmdgate/policy.toml", ASK_ABOUT_TOUCH);
    let others = Agent::ALL.into_iter().filter(|agent| agent.rewrites() && !agent.asks_about_rewrites());
    for agent in others {
        let made = format!("made-{}", agent.name());
        let command = format!("touch {made} ../escaped");
        let (taken, ran) = ask(&project, agent, &command);
        assert_eq!(taken, Taken::Deny, "{agent:?} {ran:?}");
        let (_, rest) = ran.stdout.split_once("harness allow-once ").unwrap();
        let code: String = rest.chars().take_while(char::is_ascii_alphanumeric).collect();
        assert_eq!(project.harness(["allow-once", "--yes", &code]).code, 0);
        let (taken, ran) = ask(&project, agent, &command);
        assert_eq!(taken, Taken::Rewrite, "{agent:?} {ran:?}");
        let line = rewritten(agent, &ran);
        let ran = run(&project, &line);
        assert_eq!(ran.code, 0, "{ran:?}");
        assert!(project.root().join(&made).exists() && !project.scratch().join("escaped").exists());
        assert_eq!(run(&project, &line).code, 126, "once");
        assert_eq!(ask(&project, agent, &command).0, Taken::Deny, "{agent:?}: once");
    }
}

#[test]
fn a_contained_command_that_is_shown_again_is_not_contained_twice() {
    let project = Project::new();
    project.write_beside("config/cmdgate/policy.toml", ASK_ABOUT_TOUCH);
    let line = contained(&project, "echo 'it'\\''s' | cat");
    assert_eq!(ask(&project, Agent::ClaudeCode, &line).0, Taken::Allow, "{line}");
    let (_, ran) = ask(&project, Agent::ClaudeCode, "touch made");
    let asked = rewritten(Agent::ClaudeCode, &ran);
    assert_eq!(ask(&project, Agent::ClaudeCode, &asked).0, Taken::Ask, "a permit alone is no yes: {asked}");
    // What is not to the letter the same goes into the sandbox like everything else.
    for changed in [
        line.replace("workspace_write", "danger_full_access"),
        line.replace("--passthrough", "--passthrough --policy x.toml"),
        format!("{line}; touch ../escaped"),
        format!("{line} > ../escaped"),
        format!("PATH=. {line}"),
        line.replacen("harness", "harness2", 1),
    ] {
        let (taken, ran) = ask(&project, Agent::ClaudeCode, &changed);
        assert!(matches!(taken, Taken::Rewrite | Taken::AskRewrite | Taken::Deny), "{changed}: {ran:?}");
    }
}

#[test]
fn what_cannot_be_decided_or_contained_is_denied() {
    let project = Project::new();
    let mut powershell = Agent::ClaudeCode.payload("Get-ChildItem", &project.root());
    powershell["tool_name"] = "PowerShell".into();
    assert_eq!(send(&project, Agent::ClaudeCode, &powershell).0, Taken::Deny);
    project.write_beside("config/cmdgate/policy.toml", "nonsense = [");
    for agent in Agent::ALL {
        assert_eq!(ask(&project, agent, "cat a.txt").0, Taken::Deny, "{agent:?}");
    }
}

#[test]
fn output_and_exit_code_are_the_commands_own() {
    let project = Project::new();
    for (command, code, out, err) in [
        ("printf 'a\\377\\000b'; printf oops >&2; exit 7", 7, &b"a\xff\0b"[..], &b"oops"[..]),
        ("kill -9 $$", 137, b"", b""),
        ("head -c 300000 /dev/zero | tr '\\0' x | wc -c", 0, b"300000\n", b""),
        ("exec 1>&2; echo both", 0, b"", b"both\n"),
    ] {
        let output = shell(&project, &contained(&project, command)).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{command}: {output:?}");
        assert_eq!(output.stdout, out, "{command}");
        assert_eq!(output.stderr, err, "{command}: {}", String::from_utf8_lossy(&output.stderr));
    }
    let output = shell(&project, &contained(&project, "head -c 3000000 /dev/zero")).output().unwrap();
    assert_eq!(output.stdout.len(), 3_000_000, "nothing of it is cut");
}

#[test]
fn a_command_is_contained_up_to_the_longest_argument_and_refused_beyond() {
    let project = Project::new();
    let command = |length: usize| format!("echo {} | wc -c", "x".repeat(length));
    for agent in Agent::ALL.into_iter().filter(|agent| agent.rewrites()) {
        let (taken, ran) = ask(&project, agent, &command(130_000));
        assert_eq!(taken, Taken::Rewrite, "{agent:?}");
        let ran = run(&project, &rewritten(agent, &ran));
        assert_eq!((ran.code, ran.stdout.as_str()), (0, "130001\n"), "{agent:?}");
        for length in [132_000, 1_000_000] {
            let (taken, ran) = ask(&project, agent, &command(length));
            assert_eq!(taken, Taken::Deny, "{agent:?} {length}");
            // Of very much, a slow machine says that there was no time; that is a refusal as well.
            let said = ran.stdout.contains("too long") || length > 500_000;
            assert!(said, "{agent:?} {length}: {ran:?}");
        }
    }
    // Quotes count, which the shell that takes the whole line is given too.
    let (taken, _) = ask(&project, Agent::ClaudeCode, &"echo 'a'\n".repeat(12_000));
    assert_eq!(taken, Taken::Deny);
}

#[test]
fn text_of_every_kind_survives() {
    let project = Project::new();
    for command in [
        "cat <<EOF\nx 'y' \"z\" $((1+1)) `echo bt`\nEOF",
        "cat <<'EOF' | tr a-z A-Z\n$x `y` \\ \nEOF\necho after",
        "cat <<-EOF\n\ttabbed\n\tEOF",
        "echo 'single '\"double $((2*3))\" $'ansi\\tc\\x41' \"a'b\" 'it'\\''s'",
        "printf '%s\\n' \"\\\\\" '\\' \\\\ \"\\$x\"",
        "echo trailing \\\n  continued",
        "echo x\\",
        "echo 'never closed",
        "cd src && pwd; export A=1; bash -c 'echo $A'; cd ..; pwd",
        "f() { echo \"f $1\"; return 4; }; f x; echo $?; exit 200",
        "trap 'echo bye' EXIT; trap 'echo term' TERM; kill -TERM $$; echo on",
        "sleep 5 & kill %1; wait %1; echo $?; set -m; sleep 0.1 & jobs | wc -l; fg >/dev/null; echo $?",
        "diff <(echo a) <(echo b); echo {1..3} $? \"$(printf 'a\\n\\n')\" |cat",
        "printf '\\000\\377'; printf 'no newline' >&2; exec 3>f3; echo x >&3; cat f3; exit 137",
        "# only a comment",
        "echo \"\u{e9} \u{6f22} \u{1f600}\" a\r; echo \u{1}\u{7f}\ttab",
        "read x; echo \"[$x]\"; cat",
        "echo a; echo b && false || echo c & wait; ! true; echo $?",
    ] {
        let bare = shell(&project, command).output().unwrap();
        let boxed = shell(&project, &contained(&project, command)).output().unwrap();
        assert_eq!(boxed.status.code(), bare.status.code(), "{command}: {boxed:?}");
        assert_eq!(boxed.stdout, bare.stdout, "{command}: {boxed:?}");
        // The shell calls itself by its path there.
        let said = String::from_utf8_lossy(&boxed.stderr).replace("/bin/bash:", "bash:");
        assert_eq!(said, String::from_utf8_lossy(&bare.stderr), "{command}");
    }
}

#[test]
fn the_agents_own_time_limit_is_the_only_one() {
    let project = Project::new();
    // Longer than a shell command may take that is run by the harness itself.
    let ran = run(&project, &contained(&project, "sleep 11; echo done"));
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "done\n"), "{ran:?}");
}

#[test]
fn what_is_typed_reaches_the_command() {
    let project = Project::new();
    let line = contained(&project, "read -r name; echo \"got $name\"; read -r again || echo end");
    let mut child = shell(&project, &line).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"alpha\n").unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    // It answers while it runs, and before its input ends.
    assert_eq!(lines.next().unwrap().unwrap(), "got alpha");
    drop(stdin);
    assert_eq!(lines.next().unwrap().unwrap(), "end");
    assert!(child.wait().unwrap().success());
    // What is harmless because it has no input keeps having none: here `cat -` would read it.
    project.write("-", "of the file\n");
    let line = contained(&project, "for f in ?; do cat \"$f\"; done");
    let mut child = shell(&project, &line).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    // It may have ended by then.
    let _ = child.stdin.take().unwrap().write_all(b"typed\n");
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(0), &b""[..]), "{output:?}");
    // A directory is no input: it would lead out of the sandbox.
    let line = contained(&project, "cat; ls /proc/self/fd/0/..");
    let output = shell(&project, &line).stdin(std::fs::File::open(project.home()).unwrap()).output().unwrap();
    assert!(!String::from_utf8_lossy(&output.stdout).contains("home"), "{output:?}");
    // At a terminal, as of an agent that types into its shell.
    let line = contained(&project, "test -t 0 && read -r name && echo \"got $name\"");
    let mut child = shell(&project, "script --quiet --return --command \"$LINE\" /dev/null")
        .env("LINE", line)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"beta\n").unwrap();
    let mut shown = String::new();
    child.stdout.take().unwrap().read_to_string(&mut shown).unwrap();
    drop(stdin);
    assert!(shown.contains("got beta"), "{shown:?}");
    assert!(child.wait().unwrap().success(), "{shown:?}");
}

#[test]
fn a_run_in_the_background_goes_on_and_ends_with_its_parent() {
    let project = Project::new();
    let mark = format!("29.{}", std::process::id());
    let line = contained(&project, &format!("echo up; sleep {mark}; echo late"));
    let mut child = shell(&project, &format!("exec {line}")).stdout(Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    assert_eq!(first, "up\n");
    let alive = || {
        std::fs::read_dir("/proc").unwrap().filter_map(Result::ok).any(|entry| {
            std::fs::read(entry.path().join("cmdline"))
                .is_ok_and(|line| line.starts_with(format!("sleep\0{mark}\0").as_bytes()))
        })
    };
    let begun = std::time::Instant::now();
    while !alive() {
        assert!(begun.elapsed().as_secs() < 10, "it never ran");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let status = Command::new("kill").arg(child.id().to_string()).status().unwrap();
    assert!(status.success());
    child.wait().unwrap();
    let begun = std::time::Instant::now();
    while alive() {
        assert!(begun.elapsed().as_secs() < 10, "it outlives what started it");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// The same for output that a reader takes one line of: the code of the command and that line, then standard error.
fn cut_short(project: &Project, line: &str) -> Ran {
    // A minute is what a command that nothing ends is given.
    run(project, &format!("timeout 60 {line} | head -n 1; exit ${{PIPESTATUS[0]}}"))
}

#[test]
fn a_reader_that_goes_away_ends_the_command_as_it_would_without_a_sandbox() {
    let project = Project::new();
    for (command, code, out, err) in [
        ("yes", 141, "y\n", ""),
        ("yes; echo \"ended $?\" >&2", 0, "y\n", "ended 141\n"),
        ("yes || exit 7", 7, "y\n", ""),
        ("seq 1000000 | head -n 1", 0, "1\n", ""),
        // The other stream is read on, all of it.
        ("yes; head -c 300000 /dev/zero | tr '\\0' x >&2; exit 5", 5, "y\n", &"x".repeat(300_000)),
        // Who does not mind goes on.
        ("trap '' PIPE; seq 1000000 2>/dev/null; echo \"ended $?\" >&2; exit 3", 3, "1\n", "ended 1\n"),
    ] {
        let ran = cut_short(&project, &contained(&project, command));
        assert_eq!((ran.code, ran.stdout.as_str()), (code, out), "{command}: {ran:?}");
        assert_eq!(ran.stderr, err, "{command}");
    }
    // The same for standard error.
    let ran = cut_short(&project, &format!("{} 2>&1 >/dev/null", contained(&project, "yes >&2")));
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (141, "y\n", ""), "{ran:?}");
    // And what never ends by itself still has its time.
    let line = contained(&project, "trap '' PIPE; while :; do echo x; done 2>/dev/null");
    let ran = cut_short(&project, &line.replace("--passthrough", "--passthrough --timeout-ms 1500"));
    assert_eq!((ran.code, ran.stdout.as_str()), (124, "x\n"), "{ran:?}");
}

#[test]
fn output_that_cannot_be_written_is_a_failure_that_is_told() {
    let project = Project::new();
    for (command, to, code, told) in [
        ("yes", ">/dev/full", 125, "standard output cannot be written: No space left"),
        ("echo x", ">/dev/full", 125, "standard output cannot be written: No space left"),
        ("echo x; exit 7", ">/dev/full", 125, "standard output cannot be written: No space left"),
        ("echo x >&2", "2>/dev/full", 125, ""),
        ("exit 7", ">/dev/full 2>/dev/full", 7, ""),
        // What was closed takes everything.
        ("echo x; exit 4", ">&-", 4, ""),
        ("seq 1000000; echo x >&2; exit 4", ">&- 2>&-", 4, ""),
    ] {
        let ran = run(&project, &format!("timeout 60 {} {to}", contained(&project, command)));
        assert_eq!((ran.code, ran.stdout.as_str()), (code, ""), "{command} {to}: {ran:?}");
        assert!(
            ran.stderr.contains(told) && told.is_empty() == ran.stderr.is_empty(),
            "{command} {to}: {ran:?}"
        );
    }
}

#[test]
fn a_reader_that_is_slow_and_does_not_let_wait_gets_everything() {
    let project = Project::new();
    let line = contained(&project, "head -c 1000000 /dev/zero");
    // Perl makes the pipe one that cannot be waited for, as a program that shares its streams may.
    let shared = format!(
        "set -o pipefail; (perl -MFcntl -e 'fcntl(STDOUT, F_SETFL, O_WRONLY | O_NONBLOCK) or die' && {line}) | (sleep 1; wc -c)"
    );
    let ran = run(&project, &shared);
    assert_eq!((ran.code, ran.stdout.trim()), (0, "1000000"), "{ran:?}");
}

#[test]
fn a_home_below_the_private_tmp_is_no_hole() {
    // contract: S27
    let project = Project::new();
    let home = tempfile::Builder::new().prefix("home-").tempdir_in("/tmp").unwrap();
    std::fs::write(home.path().join(".bash_history"), "of the host\n").unwrap();
    std::fs::create_dir(home.path().join(".ssh")).unwrap();
    let line = contained(
        &project,
        "echo begun; cat \"$HOME\"/.bash_history; ls -A \"$HOME\"; echo x > \"$HOME\"/.cmdgate-made",
    );
    for (place, tmp) in
        [(home.path(), "/tmp".as_ref()), (home.path(), home.path()), ("/tmp".as_ref(), home.path())]
    {
        let output = shell(&project, &line)
            .env("HOME", place)
            .env("TMPDIR", tmp)
            .env(
                "XDG_STATE_HOME",
                project
                    .scratch()
                    .join(format!("state{}{}", place.display(), tmp.display()).replace('/', "-")),
            )
            .output()
            .unwrap();
        let ran: Ran = output.into();
        assert!(ran.stdout.starts_with("begun\n"), "{place:?} {tmp:?}: {ran:?}");
        assert!(!ran.stdout.contains("of the host") && !place.join(".cmdgate-made").exists(), "{ran:?}");
    }
    let names: Vec<_> =
        std::fs::read_dir(home.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(names.iter().all(|name| !name.to_string_lossy().starts_with(".cmdgate")), "{names:?}");
}
