//! A first policy for a project, from what lies in it.
//!
//! Whatever is read here was written by others. Names from it reach the policy only where they are words of a short list, and
//! its texts only as comments in which nothing can end the comment. So the worst that a project can do is to be offered fewer
//! rules.

use crate::present::printable;
use cmdgate_policy::{Policy, PolicyFile, Timestamp, lint_at};
use serde_json::Value;
use std::fmt::Write as _;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::time::SystemTime;

/// A file longer than this, in bytes, is not looked into.
const LONGEST: u64 = 1024 * 1024;
/// Scripts and targets that only build, check and test, by custom; everything else is asked about.
const HARMLESS: &[&str] = &[
    "build",
    "check",
    "clippy",
    "compile",
    "doc",
    "docs",
    "fmt",
    "format",
    "lint",
    "test",
    "tests",
    "type-check",
    "typecheck",
    "types",
    "unit",
    "vet",
];
/// Files that hold secrets by custom, besides those that are built in.
const SECRETS: &[(&str, &str)] = &[
    (".tfvars", "*.tfvars"),
    (".tfstate", "*.tfstate"),
    (".p12", "*.p12"),
    (".pfx", "*.pfx"),
    (".jks", "*.jks"),
    (".keystore", "*.keystore"),
    (".kdbx", "*.kdbx"),
    ("credentials.json", "credentials.json"),
    (".netrc", ".netrc"),
    (".pypirc", ".pypirc"),
    (".htpasswd", ".htpasswd"),
];
/// What a machine elsewhere runs later on.
const CI: &[&str] =
    &[".github/workflows", ".gitlab-ci.yml", ".circleci", "Jenkinsfile", "azure-pipelines.yml", ".drone.yml"];

/// A policy for the project, and what it was made from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    /// The text of the file.
    pub text: String,
    /// What was found, one line each.
    pub seen: Vec<String>,
}

/// The text would not be a policy without doubts: a fault of this program, and nothing is written then.
#[derive(Debug, thiserror::Error)]
#[error("the policy made from this project is not sound ({0}); nothing was written. Please report it")]
pub struct Unsound(String);

/// A rule that will be written.
struct Line {
    effect: &'static str,
    pattern: String,
    whole: bool,
    reason: String,
}

#[derive(Default)]
struct Found {
    seen: Vec<String>,
    rules: Vec<Line>,
    secrets: Vec<&'static str>,
    protected: Vec<&'static str>,
}

/// Looks at the project and writes a policy for it.
///
/// # Errors
///
/// When the text is not a policy that this program itself would read without a doubt.
pub fn propose(root: &Path) -> Result<Proposal, Unsound> {
    let mut found = Found::default();
    node(root, &mut found);
    cargo(root, &mut found);
    go(root, &mut found);
    python(root, &mut found);
    for name in ["Makefile", "GNUmakefile", "makefile"] {
        targets(root, name, "make", &mut found);
    }
    for name in ["justfile", "Justfile", ".justfile"] {
        targets(root, name, "just", &mut found);
    }
    containers(root, &mut found);
    secrets(root, &mut found);
    for path in CI {
        if fs::symlink_metadata(root.join(path)).is_ok() {
            found.seen.push(format!("{path}: what runs elsewhere stays read-only"));
            found.protected.push(path);
        }
    }
    let text = text_of(&found);
    check(&text)?;
    Ok(Proposal { text, seen: found.seen })
}

/// What this program says about the text.
fn check(text: &str) -> Result<(), Unsound> {
    let file = PolicyFile::parse("proposal", text).map_err(|errors| Unsound(errors.to_string()))?;
    let layers = file.into_layers("project");
    let policy = layers.into_iter().fold(Policy::default(), Policy::with_layer);
    match lint_at(&policy, Timestamp::from(SystemTime::now())).first() {
        Some(lint) => Err(Unsound(lint.to_string())),
        None => Ok(()),
    }
}

/// The text of a regular file of the project; links are not followed, and what is too long or odd is not read.
fn read(root: &Path, name: &str, found: &mut Found) -> Option<String> {
    let path = root.join(name);
    let meta = fs::symlink_metadata(&path).ok()?;
    if !meta.is_file() {
        found.seen.push(format!("{name}: not a regular file, so not looked into"));
        return None;
    }
    let mut bytes = Vec::new();
    let read = fs::File::open(&path).and_then(|file| file.take(LONGEST + 1).read_to_end(&mut bytes));
    let text = match read {
        Ok(_) if bytes.len() as u64 <= LONGEST => String::from_utf8(bytes).ok(),
        Ok(_) | Err(_) => None,
    };
    if text.is_none() {
        found.seen.push(format!("{name}: too long or not text, so not looked into"));
    }
    text
}

fn is_there(root: &Path, name: &str) -> bool {
    fs::symlink_metadata(root.join(name)).is_ok()
}

/// Whether a name is made of known words alone: `test`, `lint:types`, `check-format`.
fn is_harmless(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase();
    let extra = |word: &str| matches!(word, "all" | "ci" | "css" | "fast" | "js" | "ts" | "unit");
    name.len() <= 40
        && name.starts_with(plain)
        && name.ends_with(plain)
        && (HARMLESS.contains(&name)
            || name.split([':', '-', '_', '.']).all(|word| HARMLESS.contains(&word) || extra(word)))
}

impl Found {
    fn allow(&mut self, pattern: impl Into<String>, reason: impl Into<String>) {
        self.rule("allow", pattern.into(), true, reason.into());
    }

    fn deny(&mut self, pattern: &str, reason: &str) {
        self.rule("deny", pattern.to_owned(), false, reason.to_owned());
    }

    fn rule(&mut self, effect: &'static str, pattern: String, whole: bool, reason: String) {
        if !self.rules.iter().any(|known| known.pattern == pattern) {
            self.rules.push(Line { effect, pattern, whole, reason });
        }
    }
}

fn node(root: &Path, found: &mut Found) {
    let Some(text) = read(root, "package.json", found) else { return };
    let manager =
        [("pnpm-lock.yaml", "pnpm"), ("yarn.lock", "yarn"), ("bun.lock", "bun"), ("bun.lockb", "bun")]
            .into_iter()
            .find(|(lock, _)| is_there(root, lock))
            .map_or("npm", |(_, manager)| manager);
    found.deny(&format!("{manager} publish **"), "a person releases");
    let Ok(package) = serde_json::from_str::<Value>(&text) else {
        found.seen.push("package.json: not JSON, so its scripts are not known".to_owned());
        return;
    };
    found.seen.push(format!("package.json, used with {manager}"));
    for (name, body) in package.get("scripts").and_then(Value::as_object).into_iter().flatten() {
        if is_harmless(name) {
            let body = excerpt(body.as_str().unwrap_or(""));
            if name == "test" {
                found.allow(format!("{manager} test"), format!("runs: {body}"));
            }
            found.allow(format!("{manager} run {name}"), format!("runs: {body}"));
        }
    }
}

fn cargo(root: &Path, found: &mut Found) {
    if read(root, "Cargo.toml", found).is_none() {
        return;
    }
    found.seen.push("Cargo.toml".to_owned());
    found.allow("cargo {build,check,clippy,doc,fmt,test}", "builds, checks and tests");
    found.allow("cargo {build,check,clippy,test} --workspace", "builds, checks and tests");
    found.allow("cargo {check,clippy} --all-targets", "checks");
    found.deny("cargo {publish,yank,owner} **", "a person releases");
}

fn go(root: &Path, found: &mut Found) {
    if read(root, "go.mod", found).is_none() {
        return;
    }
    found.seen.push("go.mod".to_owned());
    found.allow("go {build,test,vet} ./...", "builds, checks and tests");
    found.allow("go {build,test,vet}", "builds, checks and tests");
}

fn python(root: &Path, found: &mut Found) {
    let Some(text) = read(root, "pyproject.toml", found) else { return };
    found.seen.push("pyproject.toml".to_owned());
    found.deny("twine upload **", "a person releases");
    let runner = if is_there(root, "uv.lock") {
        Some("uv")
    } else if is_there(root, "poetry.lock") {
        Some("poetry")
    } else {
        None
    };
    if let Some(runner) = runner {
        found.deny(&format!("{runner} publish **"), "a person releases");
    }
    for (tool, command) in
        [("pytest", "pytest"), ("ruff", "ruff check"), ("mypy", "mypy ."), ("pyright", "pyright")]
    {
        if text.contains(tool) {
            found.allow(command, "checks and tests");
            if let Some(runner) = runner {
                found.allow(format!("{runner} run {command}"), "checks and tests");
            }
        }
    }
}

/// The targets of a makefile, or the recipes of a justfile, that are known words.
fn targets(root: &Path, file: &str, program: &str, found: &mut Found) {
    let Some(text) = read(root, file, found) else { return };
    found.seen.push(file.to_owned());
    for line in text.lines() {
        let Some((names, rest)) = line.split_once(':') else { continue };
        // `name := value` sets a variable.
        if rest.starts_with('=') || line.starts_with(char::is_whitespace) {
            continue;
        }
        for name in names.split_whitespace().filter(|name| is_harmless(name)) {
            found.allow(format!("{program} {name}"), format!("a target of {file}"));
        }
    }
}

fn containers(root: &Path, found: &mut Found) {
    if ["Dockerfile", "compose.yaml", "compose.yml", "docker-compose.yml", "docker-compose.yaml"]
        .iter()
        .any(|name| is_there(root, name))
    {
        found.seen.push("containers: pushing them is for a person".to_owned());
        found.deny("{docker,podman} push **", "a person releases");
    }
}

fn secrets(root: &Path, found: &mut Found) {
    let names: Vec<String> = fs::read_dir(root)
        .into_iter()
        .flatten()
        .filter_map(Result::ok)
        .take(10_000)
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    for (ending, pattern) in SECRETS {
        if names.iter().any(|name| name.ends_with(ending)) {
            found.seen.push(format!("{pattern}: neither read nor written"));
            found.secrets.push(pattern);
        }
    }
    if names.iter().any(|name| name == ".env" || name.starts_with(".env.")) {
        found.seen.push(".env: neither read nor written, by the built-in rules".to_owned());
    }
}

/// Text of others as a part of one line.
fn excerpt(text: &str) -> String {
    let short: String = text.chars().take(60).collect();
    let dots = if short.len() < text.len() { "…" } else { "" };
    format!("{}{dots}", printable(&short))
}

fn quoted(text: &str) -> String {
    toml_edit::Value::from(text).to_string().trim().to_owned()
}

fn text_of(found: &Found) -> String {
    let mut text = String::from(
        "# What an agent may do in this project. `harness policy lint` checks this file, `harness explain -- COMMAND` says\n\
         # what it comes to.\n\
         #\n\
         # Until you say `harness trust`, the allows and the looser settings below do not count: a file in a project can be\n\
         # written by whoever wrote the project. Read it, change it, and then trust it; every change needs that again.\n\n\
         # Commands may write in the project, except what is protected, and reach no network.\n\
         sandbox = \"workspace_write\"\n\
         # A person is asked about what is not known to be harmless and not allowed below.\n\
         approval = \"on_request\"\n\
         # Sequences, redirections, loops and simple expansions are understood, not single pipelines alone.\n\
         grammar = \"sequence\"\n",
    );
    let list = |items: &[&str]| items.iter().map(|item| quoted(item)).collect::<Vec<_>>().join(", ");
    if !found.protected.is_empty() {
        let _ = write!(
            text,
            "\n# Read-only, because something elsewhere runs it later.\nprotected_paths = [{}]\n",
            list(&found.protected)
        );
    }
    if !found.secrets.is_empty() {
        let _ = write!(
            text,
            "\n# Neither read nor written. Environment files and private keys are built in.\nsecrets = [{}]\n",
            list(&found.secrets)
        );
    }
    text.push_str(
        "\n# Hosts that commands may reach, for example the registry that packages come from.\n\
         # [network]\n# allow_domains = [\"registry.example.com\"]\n",
    );
    for (effect, heading) in [
        ("deny", "# Never, whoever allows it.\n"),
        (
            "allow",
            "# Without asking, exactly as written here; more arguments need ` **` at the end of the pattern. These run what\n\
             # the project's own files say, so allow them only where you would run them yourself.\n",
        ),
    ] {
        let mut rules = found.rules.iter().filter(|rule| rule.effect == effect).peekable();
        if rules.peek().is_some() {
            let _ = write!(text, "\n{heading}");
        }
        for rule in rules {
            let _ = write!(
                text,
                "\n[[rule]]\nact = \"exec\"\neffect = \"{effect}\"\npattern = {}\n",
                quoted(&rule.pattern)
            );
            if rule.whole {
                text.push_str("whole = true\n");
            }
            let _ = writeln!(text, "reason = {}", quoted(&rule.reason));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_names_of_known_words_are_harmless() {
        for name in ["test", "lint", "test:unit", "type-check", "check-format", "build:ci", "test_all"] {
            assert!(is_harmless(name), "{name}");
        }
        for name in [
            "",
            ":",
            "deploy",
            "test:deploy",
            "publish",
            "postinstall",
            "test; rm -rf /",
            "test\n",
            "test *",
            "te*t",
            "{test,deploy}",
            "test ",
            " test",
            "build$(x)",
            "тest",
            "prebuild",
            "start",
            "--test",
            "-test-x",
        ] {
            assert!(!is_harmless(name), "{name:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn whatever_the_project_holds_the_policy_is_sound(
            scripts in prop::collection::vec(("\\PC{0,20}|test|build:.{0,6}", ".{0,80}"), 0..8),
            makefile in "(?s).{0,200}|((test|lint|x y|[a-z;*$]{1,6}) ?: ?.{0,10}\n){0,5}",
            raw in "(?s).{0,60}",
        ) {
            let scratch = tempfile::tempdir().unwrap();
            let object: serde_json::Map<String, Value> =
                scripts.iter().map(|(name, body)| (name.clone(), Value::from(body.as_str()))).collect();
            let package = serde_json::json!({ "scripts": object });
            std::fs::write(scratch.path().join("package.json"), package.to_string()).unwrap();
            std::fs::write(scratch.path().join("Makefile"), &makefile).unwrap();
            std::fs::write(scratch.path().join("pyproject.toml"), &raw).unwrap();
            let proposal = propose(scratch.path()).unwrap();
            let file = PolicyFile::parse("p", &proposal.text).unwrap();
            for layer in file.into_layers("project") {
                for rule in layer.all_rules() {
                    let pattern = rule.pattern.as_str();
                    prop_assert!(
                        pattern.chars().all(|c| c.is_ascii_alphanumeric() || " -_:.{},*/".contains(c)),
                        "{pattern}"
                    );
                }
            }
        }
    }
}
