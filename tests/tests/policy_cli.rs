//! `harness policy`, `config` and `trust` as a person uses them.

use cmdgate_tests::Project;

const RULE: &str =
    "[[rule]]\nact = \"exec\"\neffect = \"allow\"\npattern = \"touch **\"\nmatch = [\"touch a\"]\n";

#[test]
fn a_projects_file_loosens_only_in_the_trusted_content() {
    // contract: X7
    let project = Project::new();
    let touch = || project.run(&["--sandbox", "workspace_write"], "touch x").code;
    project.write(".cmdgate.toml", RULE);
    assert_eq!(touch(), 126);
    let unconfirmed = project.harness(["trust"]);
    assert!(unconfirmed.code == 2 && unconfirmed.stderr.contains("--yes"), "{unconfirmed:?}");
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

#[test]
fn policies_are_tested_linted_shown_and_asked() {
    // contract: P3
    let project = Project::new();
    project.write("good.toml", RULE);
    project.write("bad.toml", &RULE.replace("touch a", "touche"));
    project.write("loose.toml", &RULE.replace("touch **", "touch*").replace("match", "#"));
    assert_eq!(project.harness(["policy", "test", "good.toml"]).code, 0);
    let bad = project.harness(["policy", "test", "bad.toml"]);
    assert!(bad.code == 1 && bad.stderr.contains("bad.toml"), "{bad:?}");
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
