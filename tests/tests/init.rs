//! `harness init`: a first policy from what lies in a project.

use cmdgate_tests::{Project, Ran};
use std::os::unix::fs::symlink;

fn policy(project: &Project) -> String {
    std::fs::read_to_string(project.root().join(".cmdgate.toml")).unwrap()
}

/// What would be decided, once the policy is trusted.
fn check(project: &Project, command: &str) -> Ran {
    project.harness(["check", "--", command])
}

fn package(project: &Project, scripts: &serde_json::Value) {
    project.write("package.json", &serde_json::json!({ "name": "x", "scripts": scripts }).to_string());
}

#[test]
fn a_project_gets_the_rules_of_what_it_holds() {
    let project = Project::new();
    package(
        &project,
        &serde_json::json!({ "test": "vitest run", "lint:ts": "eslint .", "deploy": "./deploy" }),
    );
    project.write("Cargo.toml", "[package]\nname = \"x\"\n");
    project.write("go.mod", "module x\n");
    project.write("Makefile", "CC := cc\ntest: build\n\tgo test\ninstall:\n\tcp x /usr\n");
    project.write("justfile", "lint:\n  ruff check\n");
    project.write("pyproject.toml", "[tool.pytest.ini_options]\n");
    project.write("uv.lock", "");
    project.write("main.tfvars", "x");
    project.write(".env", "A=1\n");
    project.write(".github/workflows/ci.yml", "on: push\n");
    let dry = project.harness(["init", "--dry-run"]);
    assert_eq!(dry.code, 0, "{dry:?}");
    assert!(!project.root().join(".cmdgate.toml").exists());
    let ran = project.harness(["init"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(policy(&project), dry.stdout);
    assert!(ran.stdout.contains("harness trust"), "the next step is said: {ran:?}");
    assert!(policy(&project).lines().filter(|line| line.starts_with('#')).count() > 5);
    let lint = project.harness(["policy", "lint"]);
    assert_eq!(lint.code, 0, "{lint:?}");
    assert_eq!(project.harness(["policy", "test"]).code, 0);
    // Until it is trusted it only tightens.
    assert_eq!(check(&project, "npm test").code, 20, "a read_only run denies it");
    assert_eq!(check(&project, "npm publish").code, 20);
    assert_eq!(project.harness(["trust", "--yes"]).code, 0);
    let lint = project.harness(["policy", "lint"]);
    assert_eq!((lint.code, lint.stdout.as_str()), (0, "nothing is doubtful\n"), "{lint:?}");
    for allowed in [
        "npm test",
        "npm run lint:ts",
        "cargo test",
        "go test ./...",
        "make test",
        "just lint",
        "uv run pytest",
    ] {
        assert_eq!(check(&project, allowed).code, 0, "{allowed}: {:?}", check(&project, allowed));
    }
    for asked in
        ["npm run deploy", "make install", "npm test -- --x", "cargo run", "cat main.tfvars; npm run x"]
    {
        assert_ne!(check(&project, asked).code, 0, "{asked}");
    }
    for denied in ["npm publish", "cargo publish --dry-run", "cat main.tfvars", "cat .env"] {
        assert_eq!(check(&project, denied).code, 20, "{denied}");
    }
}

#[test]
fn a_file_that_is_there_stays() {
    let project = Project::new();
    project.write(".cmdgate.toml", "# mine\n");
    let ran = project.harness(["init"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.stderr.contains("--force"), "{ran:?}");
    assert_eq!(policy(&project), "# mine\n");
    assert_eq!(project.harness(["init", "--force"]).code, 0);
    assert_ne!(policy(&project), "# mine\n");
}

#[test]
fn nothing_is_written_through_a_link() {
    let project = Project::new();
    for target in [project.scratch().join("outside/secret.txt"), project.scratch().join("nowhere")] {
        symlink(&target, project.root().join(".cmdgate.toml")).unwrap();
        for options in [&["init"][..], &["init", "--force"]] {
            let ran = project.harness(options);
            assert_eq!(ran.code, 1, "{ran:?}");
        }
        assert!(!project.scratch().join("nowhere").exists());
        assert_eq!(
            std::fs::read_to_string(project.scratch().join("outside/secret.txt")).unwrap(),
            "CANARY-SECRET\n"
        );
        std::fs::remove_file(project.root().join(".cmdgate.toml")).unwrap();
    }
    std::fs::create_dir(project.root().join(".cmdgate.toml")).unwrap();
    assert_eq!(project.harness(["init", "--force"]).code, 1);
}

#[test]
fn a_hostile_project_is_offered_nothing_dangerous() {
    let hostile = serde_json::json!({
        "test; rm -rf ~": "x", "*": "x", "test *": "x", "{test,deploy}": "x", "build\n[[rule]]": "x",
        "test\"\neffect = \"allow\"": "x", "postinstall": "x", "deploy": "x", "": "x", "**": "x",
        "lint": "echo \"\"\"\n[[rule]]\nact = \"exec\"\neffect = \"allow\"\npattern = \"*\"\n\u{1b}[2K\u{202e}",
    });
    let project = Project::new();
    package(&project, &hostile);
    project.write(
        "Makefile",
        "test $(shell id): x\n*: y\ntest\u{0}: z\n[[rule]]: q\n$(x) lint ; rm: y\nbuild|rm: z\n%.o: %.c\n",
    );
    project.write("pyproject.toml", "= \u{feff}[[[[");
    let ran = project.harness(["init"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(project.harness(["policy", "lint"]).code, 0);
    assert_eq!(project.harness(["trust", "--yes"]).code, 0);
    assert!(!policy(&project).contains(['\u{1b}', '\u{202e}', '\u{0}']));
    for command in [
        "rm -rf x",
        "npm run deploy",
        "npm run postinstall",
        "npm run x",
        "npm x",
        "make x",
        "make",
        "npm test; rm x",
        "npm run '*'",
        "bash -c x",
        "npm run lint -- --fix",
        "npm run lint && curl x",
    ] {
        assert_ne!(check(&project, command).code, 0, "{command}");
    }
    assert_eq!(check(&project, "npm run lint").code, 0, "{}", policy(&project));
}

#[test]
fn huge_linked_and_odd_files_are_left_out() {
    let project = Project::new();
    project
        .write("package.json", &format!("{{\"scripts\":{{\"test\":\"{}\"}}}}", "x".repeat(2 * 1024 * 1024)));
    project.write("justfile", &"[".repeat(500_000));
    std::fs::write(project.root().join("pyproject.toml"), b"pytest \xff\xfe").unwrap();
    symlink(project.scratch().join("outside/secret.txt"), project.root().join("Makefile")).unwrap();
    std::fs::create_dir(project.root().join("go.mod")).unwrap();
    let ran = project.harness(["init"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    for name in ["package.json", "pyproject.toml", "Makefile", "go.mod"] {
        assert!(ran.stdout.contains(&format!("saw {name}: ")), "{name}: {ran:?}");
    }
    assert!(!policy(&project).contains("effect = \"allow\""), "{}", policy(&project));
    assert!(!policy(&project).contains("CANARY"));
    let deep = Project::new();
    deep.write("package.json", &"{\"scripts\":".repeat(50_000));
    assert_eq!(deep.harness(["init"]).code, 0);
}
