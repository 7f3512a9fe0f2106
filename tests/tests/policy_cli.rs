//! `harness policy`, `config` and `trust` as a person uses them.

use cmdgate_tests::{Project, Ran};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

const RULE: &str =
    "[[rule]]\nact = \"exec\"\neffect = \"allow\"\npattern = \"touch **\"\nmatch = [\"touch a\"]\n";

#[test]
fn a_projects_file_loosens_only_in_the_trusted_content() {
    // contract: X7
    let project = Project::new();
    let none = project.harness(["trust"]);
    assert!(none.code == 3 && none.stderr.contains("`harness init` writes one"), "{none:?}");
    let touch = || project.run(&["--sandbox", "workspace_write"], "touch x").code;
    project.write(".cmdgate.toml", RULE);
    assert_eq!(touch(), 126);
    let unconfirmed = project.harness(["trust"]);
    assert!(unconfirmed.code == 1 && unconfirmed.stderr.contains("--yes"), "{unconfirmed:?}");
    assert!(unconfirmed.stdout.contains("allow exec `touch **`"), "{unconfirmed:?}");
    assert_eq!(touch(), 126);
    assert_eq!(project.harness(["trust", "--yes"]).code, 0);
    assert_eq!(touch(), 0);
    assert!(project.harness(["trust", "--list"]).stdout.contains("trusted"));
    project.write(".cmdgate.toml", &format!("{RULE}# changed\n"));
    assert_eq!(touch(), 126, "a changed file is untrusted again");
    assert!(project.harness(["trust", "--list"]).stdout.contains("changed since"));
    assert_eq!(project.harness(["trust", "--yes"]).code, 0);
    assert_eq!(project.harness(["trust", "--revoke"]).code, 0);
    assert_eq!(touch(), 126);
    assert_eq!(project.harness(["trust", "--revoke"]).code, 1);
}

#[cfg(unix)]
#[test]
fn a_trusted_file_is_trusted_whichever_way_the_project_is_reached() {
    // contract: X7
    let project = Project::new();
    project.write(".cmdgate.toml", RULE);
    let link = project.scratch().join("link");
    std::os::unix::fs::symlink(project.root(), &link).unwrap();
    let linked = link.join(".cmdgate.toml");
    let run = |root: &Path| {
        let root = root.to_str().unwrap();
        project.harness(["check", "--sandbox", "workspace_write", "--root", root, "--", "touch x"]).code
    };
    let ways = [project.root(), link, project.root().join("src/.."), project.scratch().join("./project")];
    assert_eq!(project.harness(["trust", "--yes", linked.to_str().unwrap()]).code, 0);
    for way in &ways {
        assert_eq!(run(way), 0, "{}", way.display());
    }
    assert_eq!(project.harness(["trust", "--revoke"]).code, 0);
    for way in &ways {
        assert_eq!(run(way), 10, "{}", way.display());
    }
}

#[test]
fn policies_are_tested_linted_shown_and_asked() {
    // contract: P3
    let project = Project::new();
    project.write("good.toml", RULE);
    project.write("bad.toml", &RULE.replace("touch a", "touche"));
    project.write("loose.toml", &RULE.replace("touch **", "touch*").replace("match", "#"));
    let good = project.harness(["policy", "test", "good.toml"]);
    assert_eq!((good.code, good.stdout.as_str()), (0, "1 example holds in 1 file\n"), "{good:?}");
    let both = project.harness(["policy", "test", "good.toml", "good.toml"]);
    assert_eq!(both.stdout, "2 examples hold in 2 files\n", "{both:?}");
    project.write("key.toml", &format!("{RULE}patern = 1\n"));
    let key = project.harness(["policy", "test", "good.toml", "key.toml"]);
    assert!(key.code == 3 && key.stderr.contains("key.toml") && key.stdout.is_empty(), "{key:?}");
    let bad = project.harness(["policy", "test", "bad.toml"]);
    assert!(bad.code == 1 && bad.stdout.is_empty() && bad.stderr.contains("bad.toml"), "{bad:?}");
    let lint = project.harness(["policy", "lint", "--policy", "loose.toml"]);
    assert!(lint.code == 1 && lint.stdout.contains("unbound-word"), "{lint:?}");
    let show = project.harness(["policy", "show", "--policy", "good.toml"]);
    assert!(show.stdout.contains("touch **") && show.stdout.contains("builtin-secrets"), "{show:?}");
    assert_eq!(project.harness(["policy", "check", "read", "x/.env"]).code, 20);
    assert_eq!(project.harness(["policy", "check", "exec", "touch x", "--policy", "good.toml"]).code, 0);
    assert_eq!(project.harness(["policy", "check", "exec", "touch x"]).code, 10);
    assert!(project.harness(["policy", "schema"]).json()["properties"]["rule"].is_object());
    let config = project.harness(["config", "show", "--origin", "--json"]).json();
    assert!(config["origins"].as_array().is_some_and(|origins| origins.len() >= 4), "{config}");
    assert!(project.harness(["config", "show", "--origin"]).stdout.contains("# project: "));
}

#[test]
fn the_settings_that_are_shown_are_toml() {
    // contract: X7
    let project = Project::new();
    let policy = "[network]\nallow_domains = [\"crates.io\"]\n[trace]\nredact = ['a\"b\\d']\n";
    project.write_beside("config/cmdgate/policy.toml", policy);
    let shown = project.harness(["config", "show", "--origin"]).stdout;
    let read: toml::Table = toml::from_str(&shown).unwrap_or_else(|error| panic!("{error}\n{shown}"));
    assert_eq!(read["network"]["allow_domains"][0].as_str(), Some("crates.io"), "{shown}");
    assert_eq!(read["trace"]["redact"][0].as_str(), Some("a\"b\\d"), "{shown}");
}

#[test]
fn trust_shows_what_changed_since_the_last_time() {
    // contract: X7
    let project = Project::new();
    let rule = |effect: &str, pattern: &str| {
        format!("[[rule]]\nact = \"exec\"\neffect = \"{effect}\"\npattern = \"{pattern}\"\n")
    };
    let (make, rm, curl) = (rule("allow", "make **"), rule("deny", "rm **"), rule("allow", "curl **"));
    project.write(".cmdgate.toml", &format!("{make}{rm}"));
    let first = project.harness(["trust", "--yes"]);
    assert!(first.code == 0 && first.stdout.contains("  | pattern = \"make **\""), "{first:?}");
    assert!(first.stdout.contains("allow exec `make **`\n"), "{first:?}");
    let same = project.harness(["trust"]);
    assert!(same.code == 0 && same.stdout.contains("trusted in exactly this content"), "{same:?}");
    project.write(".cmdgate.toml", &format!("{make}{curl}"));
    let second = project.harness(["trust", "--yes"]);
    assert_eq!(second.code, 0, "{second:?}");
    for part in [
        "changed since you trusted it",
        "\n  -effect = \"deny\"\n",
        "\n  -pattern = \"rm **\"\n",
        "\n  +pattern = \"curl **\"\n",
        "allow exec `make **`\n",
        "allow exec `curl **`  (new)\n",
    ] {
        assert!(second.stdout.contains(part), "{part}: {}", second.stdout);
    }
    assert!(!second.stdout.contains("  | "), "only what changed: {}", second.stdout);
    // Nobody is there to confirm it: shown, and not trusted.
    project.write(".cmdgate.toml", &curl);
    let asked = project.harness(["trust"]);
    assert!(asked.code == 1 && asked.stdout.contains("-pattern = \"make **\""), "{asked:?}");
    assert!(project.harness(["trust", "--list"]).stdout.contains("changed since"));
}

#[test]
fn a_policy_of_ten_megabytes_is_read_and_one_that_is_larger_than_any_is_refused() {
    // contract: P2, P3
    let project = Project::new();
    let reason = "x".repeat(2000);
    let mut text = String::new();
    let mut n = 0;
    while text.len() < 10 << 20 {
        n += 1;
        text += &format!(
            "[[rule]]\nact = \"exec\"\neffect = \"allow\"\npattern = \"program-{n} **\"\nreason = \"{reason}\"\n"
        );
    }
    text += "[[rule]]\nact = \"exec\"\neffect = \"deny\"\npattern = \"cat **\"\n";
    let policy = "config/cmdgate/policy.toml";
    project.write_beside(policy, &text);
    let allowed = project.harness(["check", "--json", "--", &format!("program-{n} x")]);
    assert_eq!((allowed.code, allowed.json()["effect"].as_str()), (0, Some("allow")), "{allowed:?}");
    let denied = project.run(&[], "cat a.txt");
    assert!(denied.code == 126 && denied.stderr.contains("cat **"), "{denied:?}");
    // Broken at its very end: an error with its place, and nothing runs.
    project.write_beside(policy, &format!("{text}effekt = 1\n"));
    let broken = project.run(&[], "ls");
    let line = text.lines().count() + 1;
    assert!(broken.code == 3 && broken.stderr.contains(&format!("policy.toml:{line}:1")), "{}", broken.code);
    assert!(broken.stderr.len() < 10_000, "{} bytes", broken.stderr.len());
    project.write_beside(policy, &"# \n".repeat((16 << 20) / 3 + 1));
    let large = project.run(&[], "ls");
    assert!(large.code == 3 && large.stderr.contains("at most"), "{large:?}");
}

/// Runs `harness`, and ends the test when it does not end by itself in good time.
fn in_time(project: &Project, args: &[&str]) -> Ran {
    let mut command = project.command(args);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begun.elapsed() > Duration::from_secs(20) {
            child.kill().unwrap();
            panic!("{args:?} does not end");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.wait_with_output().unwrap().into()
}

#[cfg(target_os = "linux")]
#[test]
fn what_is_no_bounded_regular_file_is_refused_at_once_wherever_a_file_is_read() {
    // contract: P2, P12, X7
    type Make = fn(&Path);
    let kinds: [(&str, Make); 4] = [
        ("fifo", |path| {
            assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
        }),
        ("directory", |path| std::fs::create_dir(path).unwrap()),
        ("endless", |path| std::os::unix::fs::symlink("/dev/zero", path).unwrap()),
        ("sparse", |path| std::fs::File::create(path).unwrap().set_len(10 << 30).unwrap()),
    ];
    let project = Project::new();
    assert_eq!(in_time(&project, &["run", "--", "cat a.txt"]).code, 0);
    let made = |name: &str, make: Make| -> PathBuf {
        let path = project.scratch().join("odd").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        make(&path);
        path
    };
    for (kind, make) in kinds {
        let odd = made(kind, make);
        let odd = odd.to_str().unwrap();
        let named: [&[&str]; 9] = [
            &["run", "--policy", odd, "--", "cat a.txt"],
            &["check", "--policy", odd, "--", "cat a.txt"],
            &["policy", "test", odd],
            &["trust", odd],
            &["run", "--trace", odd, "--", "cat a.txt"],
            &["log", "--trace", odd],
            &["approvals", "list", "--trace", odd],
            &["import", "claude", odd],
            &["learn", "--from", odd],
        ];
        for args in named {
            // A folder of sessions may be empty.
            if args[0] == "learn" && kind == "directory" {
                continue;
            }
            let ran = in_time(&project, args);
            let named = ran.stderr.contains(odd) || ran.stderr.contains("/dev/zero");
            assert!(matches!(ran.code, 3 | 125) && named, "{args:?}: {ran:?}");
            assert!(ran.stdout.is_empty() && ran.stderr.len() < 2000, "{args:?}: {ran:?}");
        }
        for (place, args) in [
            ("config/cmdgate/policy.toml", &["run", "--", "cat a.txt"][..]),
            ("config/cmdgate/remembered.toml", &["run", "--", "cat a.txt"]),
            ("config/cmdgate/remembered.toml", &["rules", "list"]),
            ("project/.cmdgate.toml", &["run", "--", "cat a.txt"]),
            ("project/.cmdgate.toml", &["trust"]),
            ("state/cmdgate/trusted.json", &["trust", "--list"]),
            ("state/cmdgate/allow-once.json", &["allow-once", "abcdef"]),
        ] {
            let path = project.scratch().join(place);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            let _ = std::fs::remove_file(&path);
            make(&path);
            let ran = in_time(&project, args);
            assert!(matches!(ran.code, 3 | 125), "{kind} {place} {args:?}: {ran:?}");
            assert!(ran.stderr.contains(place.rsplit('/').next().unwrap()), "{kind} {args:?}: {ran:?}");
            let _ = std::fs::remove_dir(&path);
            let _ = std::fs::remove_file(&path);
        }
        // The record of what is trusted is looked at once there is something to trust.
        project.write(".cmdgate.toml", RULE);
        let record = project.scratch().join("state/cmdgate/trusted.json");
        make(&record);
        let ran = in_time(&project, &["run", "--", "cat a.txt"]);
        assert!(ran.code == 3 && ran.stderr.contains("trusted.json"), "{kind}: {ran:?}");
        let _ = std::fs::remove_dir(&record);
        let _ = std::fs::remove_file(&record);
        std::fs::remove_file(project.root().join(".cmdgate.toml")).unwrap();
    }
    assert_eq!(in_time(&project, &["run", "--", "cat a.txt"]).code, 0);
}

#[test]
fn a_directory_that_is_not_there_is_named() {
    // contract: S10, S16
    let project = Project::new();
    for args in [
        &["run", "--root", "no/such", "--", "ls"][..],
        &["check", "--root", "/no/such", "--", "ls"],
        &["agent", "x", "--root", "no/such"],
        &["policy", "lint", "--root", "no/such"],
        &["config", "show", "--root", "a.txt"],
        &["learn", "--from", "trace", "--root", "no/such"],
    ] {
        let ran: Ran = project.command(args).env("OPENROUTER_API_KEY", "k").output().unwrap().into();
        let named =
            if args.contains(&"a.txt") { "a.txt: it is not a directory" } else { "no/such: No such file" };
        assert!(
            ran.code == 125 && ran.stderr.contains("--root") && ran.stderr.contains(named),
            "{args:?}: {ran:?}"
        );
    }
    let workdir = project.run(&["--workdir", "no/such"], "ls");
    assert!(workdir.code == 126 && workdir.stderr.contains("no/such"), "{workdir:?}");
    let gone = project.scratch().join("gone");
    std::fs::create_dir(&gone).unwrap();
    let harness = cmdgate_tests::harness_binary().to_str().unwrap();
    for args in ["run -- ls", "check -- ls", "policy lint", "trust", "init", "run --root . -- ls"] {
        let script = format!("cd '{0}' && rmdir '{0}' && {harness} {args}", gone.display());
        let _ = std::fs::create_dir(&gone);
        let mut command = std::process::Command::new("bash");
        command.args(["-c", &script]);
        for (name, value) in project.command([""; 0]).get_envs() {
            if let Some(value) = value {
                command.env(name, value);
            }
        }
        let ran: Ran = command.output().unwrap().into();
        assert!(
            ran.code == 125 && ran.stderr.contains("the current directory is not there any more"),
            "{args}: {ran:?}"
        );
    }
}

#[cfg(target_os = "linux")]
#[test]
fn the_operators_file_binds_whatever_user_project_and_command_line_say() {
    // contract: P2, P3
    let project = Project::new();
    let rule =
        |effect: &str| format!("[[rule]]\nact = \"exec\"\neffect = \"{effect}\"\npattern = \"ls **\"\n");
    project.write_beside("operator.toml", &format!("lock = true\nsandbox = \"read_only\"\n{}", rule("deny")));
    let loose = format!("sandbox = \"danger_full_access\"\napproval = \"never\"\n{}", rule("allow"));
    project.write_beside("config/cmdgate/policy.toml", &loose);
    project.write(".cmdgate.toml", &loose);
    project.write("extra.toml", &loose);
    assert_eq!(project.harness(["trust", "--yes"]).code, 0);
    let operator = project.scratch().join("operator.toml");
    let under = |args: &[&str]| -> Ran {
        let mut command = std::process::Command::new("bwrap");
        command.args(["--dev-bind", "/", "/", "--tmpfs", "/etc", "--dir", "/etc/cmdgate", "--ro-bind"]);
        command.arg(&operator).args(["/etc/cmdgate/policy.toml"]);
        command.arg(cmdgate_tests::harness_binary()).args(args).current_dir(project.root());
        for (name, value) in project.command([""; 0]).get_envs() {
            if let Some(value) = value {
                command.env(name, value);
            }
        }
        command.output().unwrap().into()
    };
    let wide = ["--policy", "extra.toml", "--sandbox", "danger_full_access", "--approval", "never"];
    let denied = under(&[&["check", "--json"], &wide[..], &["--", "ls"]].concat());
    let json = denied.json();
    assert_eq!(
        (denied.code, json["effect"].as_str(), json["layer"].as_str()),
        (20, Some("deny"), Some("operator")),
        "{denied:?}"
    );
    let locked = under(&[&["check", "--json"], &wide[..], &["--", "touch x"]].concat());
    assert_eq!(locked.code, 20, "the sandbox stays read_only: {locked:?}");
    let shown = under(&[&["config", "show", "--origin"], &wide[..]].concat()).stdout;
    let order: Vec<usize> = ["# operator: ", "# user: ", "# remembered: ", "# project: ", "# command-line: "]
        .iter()
        .map(|line| shown.find(line).unwrap_or_else(|| panic!("{line}: {shown}")))
        .collect();
    assert!(order.is_sorted() && shown.contains("sandbox = \"read_only\""), "{shown}");
    // Without that file, all of it is allowed.
    let free = project.harness([&["check", "--json"], &wide[..], &["--", "touch x && ls"]].concat());
    assert_eq!(free.code, 0, "{free:?}");
}
