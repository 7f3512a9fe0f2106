//! Gemini CLI.

use super::{Dice, ENDS, Line, Model, PROGRAMS, Says, WORDS, every_part, hold, start, stricter};
use cmdgate_harness::gate::{Gate, Request};
use cmdgate_harness::import::{Source, SourceFile, import};
use cmdgate_policy::{ApprovalPolicy, Effect, Policy, SandboxMode};

#[derive(Debug, Clone)]
enum Matches {
    Everything,
    /// Bound at a word.
    Prefixes(Vec<String>),
    /// `program (a|b)`
    Either(String, &'static str, &'static str),
    /// `start.*word`
    Later(String, &'static str),
}

#[derive(Debug)]
struct Rule {
    matches: Matches,
    decision: &'static str,
    priority: usize,
    redirection: bool,
    only_yolo: bool,
}

#[derive(Debug)]
struct Gemini {
    rules: Vec<Rule>,
}

const PLAIN: &[&str] = &["run", "test", "status", "push", "main", "log", "x"];

impl Matches {
    fn matches(&self, text: &str) -> bool {
        match self {
            Self::Everything => true,
            Self::Prefixes(prefixes) => {
                prefixes.iter().any(|prefix| text == prefix || text.starts_with(&format!("{prefix} ")))
            }
            Self::Either(program, one, other) => {
                text.starts_with(&format!("{program} {one}"))
                    || text.starts_with(&format!("{program} {other}"))
            }
            Self::Later(start, word) => {
                text.strip_prefix(start.as_str()).is_some_and(|rest| rest.contains(word))
            }
        }
    }
}

impl Model for Gemini {
    const SOURCE: Source = Source::Gemini;
    const IN_EVERY_SPELLING: bool = false;

    fn make(dice: &mut Dice) -> Self {
        let rule = |dice: &mut Dice| Rule {
            matches: match dice.below(8) {
                0 if dice.one_in(2) => Matches::Everything,
                0 | 1 => Matches::Either(dice.pick(PROGRAMS).to_owned(), dice.pick(PLAIN), dice.pick(PLAIN)),
                2 if dice.one_in(3) => Matches::Later(format!("{} ", dice.pick(PROGRAMS)), dice.pick(ENDS)),
                2 => Matches::Later(format!("{} ", dice.pick(PROGRAMS)), dice.pick(PLAIN)),
                _ => Matches::Prefixes((0..=dice.below(2)).map(|_| start(dice)).collect()),
            },
            decision: dice.pick(&["allow", "allow", "allow", "ask_user", "deny"]),
            priority: dice.below(6) * 100,
            redirection: dice.one_in(4),
            only_yolo: dice.one_in(10),
        };
        Self { rules: (0..dice.below(8)).map(|_| rule(dice)).collect() }
    }

    fn file(&self) -> String {
        let mut out = String::from("# mine\n");
        for rule in &self.rules {
            out += "[[rule]]\ntoolName = \"run_shell_command\"\n";
            out += &match &rule.matches {
                Matches::Everything => String::new(),
                Matches::Prefixes(prefixes) => format!("commandPrefix = {}\n", serde_json::json!(prefixes)),
                Matches::Either(program, one, other) => {
                    format!("commandRegex = '{program} ({one}|{other})'\n")
                }
                Matches::Later(start, word) => format!("commandRegex = '{start}.*{word}'\n"),
            };
            out += &format!("decision = \"{}\"\npriority = {}\n", rule.decision, rule.priority);
            if rule.redirection {
                out += "allowRedirection = true\n";
            }
            if rule.only_yolo {
                out += "modes = [\"yolo\"]\n";
            }
        }
        out
    }

    fn templates(&self) -> Vec<String> {
        let text = |rule: &Rule| match &rule.matches {
            Matches::Everything => "mk *".to_owned(),
            Matches::Prefixes(prefixes) => format!("{} *", prefixes[0]),
            Matches::Either(program, one, _) => format!("{program} {one}"),
            Matches::Later(start, word) => format!("{start} * {word}"),
        };
        self.rules.iter().map(text).collect()
    }

    fn says(&self, line: &Line) -> Says {
        let all = every_part(line, |part| {
            let says = |text: &str| {
                // Of the same priority, the first.
                let matching = self.rules.iter().filter(|rule| !rule.only_yolo && rule.matches.matches(text));
                let best = matching.rev().max_by_key(|rule| rule.priority);
                match best {
                    None => Says::Nothing,
                    Some(rule) if rule.decision == "deny" => Says::Deny,
                    Some(rule) if rule.decision == "ask_user" => Says::Ask,
                    Some(rule) if part.redirect.is_some() && !rule.redirection => Says::Nothing,
                    Some(_) => Says::Allow,
                }
            };
            // Whether a part's text has its redirection in it is not documented.
            match says(&part.whole()) {
                strict @ (Says::Ask | Says::Deny) => stricter(says(&part.before()), strict),
                Says::Allow | Says::Nothing => says(&part.before()),
            }
        });
        if line.subshell && all == Says::Allow { Says::Nothing } else { all }
    }
}

#[test]
fn what_gemini_denies_or_asks_is_not_allowed() {
    assert!(WORDS.len() > PLAIN.len());
    let share = hold::<Gemini>();
    assert!(share > 0.5, "of what the rules allowed, only {share:.2} is allowed");
}

/// What the engine of 0.61.0 decided with this rule alone.
#[test]
fn what_gemini_asks_about_without_a_rule_is_not_allowed() {
    for redirection in [false, true] {
        let text = format!(
            "[[rule]]\ntoolName = \"run_shell_command\"\ncommandPrefix = \"npm\"\ndecision = \"allow\"\n\
             priority = 100\nallowRedirection = {redirection}\n"
        );
        let imported = import(Source::Gemini, &[SourceFile { name: "r.toml".to_owned(), text }]).unwrap();
        let policy = Policy::default().with_layer(imported.layer);
        let mut settings = policy.settings();
        settings.sandbox = Some(SandboxMode::WorkspaceWrite);
        settings.approval = Some(ApprovalPolicy::OnRequest);
        let root = tempfile::tempdir().unwrap();
        let gate = Gate::new(root.path(), policy, settings).unwrap();
        let effect = |line: &str| gate.decide(&Request::shell(line)).effect;
        for line in ["npm x", "npm x | npm y", "npm x && npm y", "npm 'x'", "npm x # c"] {
            assert_eq!(effect(line), Effect::Allow, "{line}");
        }
        for line in [
            "(npm x)",
            "{ npm x; }",
            "! npm x",
            "time npm x",
            "for f in a; do npm x; done",
            "while npm x; do npm y; done",
            "if npm x; then npm y; fi",
            "case a in a) npm x;; esac",
            "A=1 npm x",
            "nice npm x",
            "command npm x",
            "timeout 5 npm x",
            "exec npm x",
            "builtin npm x",
            "f() { npm x; }; f",
        ] {
            assert_ne!(effect(line), Effect::Allow, "{line}");
        }
        let redirected = if redirection { Effect::Allow } else { Effect::Ask };
        assert_eq!(effect("npm x 2>&1"), redirected);
    }
}

fn gate(files: &[(&str, &str)], root: &tempfile::TempDir) -> Gate {
    let files: Vec<SourceFile> = files
        .iter()
        .map(|(name, text)| SourceFile { name: (*name).to_owned(), text: (*text).to_owned() })
        .collect();
    let policy = Policy::default().with_layer(import(Source::Gemini, &files).unwrap().layer);
    let mut settings = policy.settings();
    settings.sandbox = Some(SandboxMode::WorkspaceWrite);
    settings.approval = Some(ApprovalPolicy::OnRequest);
    Gate::new(root.path(), policy, settings).unwrap()
}

fn rule(what: &str, decision: &str, priority: u32) -> String {
    format!("[[rule]]\n{what}\ndecision = \"{decision}\"\npriority = {priority}\n")
}

const SHELL: &str = "toolName = \"run_shell_command\"";

/// What the engine of 0.61.0 asks about with a rule that allows every command.
#[test]
fn what_gemini_calls_dangerous_is_asked_about() {
    let root = tempfile::tempdir().unwrap();
    for what in [SHELL.to_owned(), "toolName = \"*\"".to_owned(), format!("{SHELL}\ncommandPrefix = \"\"")] {
        let gate = gate(&[("r.toml", &rule(&what, "allow", 100))], &root);
        let effect = |line: &str| gate.decide(&Request::shell(line)).effect;
        for line in ["npm test", "rm x", "git commit -m x", "git add .", "ln a b", "mk -c x"] {
            assert_eq!(effect(line), Effect::Allow, "{what}: {line}");
        }
        for line in [
            "rm -rf x",
            "rm -f x",
            "rm -fr x",
            "npm test && rm -rf x",
            "ln -s a b",
            "ln -fs a b",
            "sudo npm test",
            "find . -exec mk {} +",
            "find . -delete",
            "git -c a.b=c push",
            "git log --output=x",
            "git branch x",
            "rg --pre mk x",
            "base64 -o x y",
        ] {
            assert_ne!(effect(line), Effect::Allow, "{what}: {line}");
        }
    }
}

/// A prefix is followed by a blank, a quote or the end; so one that ends in a blank is for no plain command, and an empty
/// one in a list for none either. A `*` inside a tool's name is for tools of MCP servers.
#[test]
fn rules_that_gemini_does_not_match_allow_nothing() {
    let root = tempfile::tempdir().unwrap();
    for what in [
        format!("{SHELL}\ncommandPrefix = \"mk \""),
        format!("{SHELL}\ncommandPrefix = \" \""),
        format!("{SHELL}\ncommandPrefix = [\"\", \"cargo\"]"),
        format!("{SHELL}\ncommandRegex = \"mk ^run\""),
        "toolName = \"run_shell_*\"".to_owned(),
        "toolName = \"run_shell_*\"\ncommandPrefix = \"mk\"".to_owned(),
    ] {
        let gate = gate(&[("r.toml", &rule(&what, "allow", 100))], &root);
        for line in ["mk", "mk run", "mk '^run'"] {
            assert_ne!(gate.decide(&Request::shell(line)).effect, Effect::Allow, "{what}: {line}");
        }
        // Nor does it take anything out of what is denied.
        let both =
            [rule(&what, "allow", 200), rule(&format!("{SHELL}\ncommandPrefix = \"mk\""), "deny", 100)];
        let gate = self::gate(&[("r.toml", &both.concat())], &root);
        assert_eq!(gate.decide(&Request::shell("mk run")).effect, Effect::Deny, "{what}");
    }
}

/// A policy of an administrator comes before a user's, a user's before a project's, and an extension allows nothing.
#[test]
fn a_rule_of_another_folder_overrides_only_where_that_is_known() {
    let root = tempfile::tempdir().unwrap();
    let mk = format!("{SHELL}\ncommandPrefix = \"mk\"");
    let (allow, deny) = (rule(&mk, "allow", 900), rule(&mk, "deny", 100));
    for (allowing, denying, expected) in [
        ("a.toml", "b.toml", Effect::Allow),
        ("/home/me/.gemini/policies/a.toml", "/home/me/.gemini/policies/b.toml", Effect::Allow),
        ("/etc/gemini-cli/policies/a.toml", "/home/me/.gemini/policies/b.toml", Effect::Allow),
        ("/home/me/.gemini/policies/a.toml", "/etc/gemini-cli/policies/b.toml", Effect::Deny),
        (".gemini/policies/a.toml", "/home/me/.gemini/policies/b.toml", Effect::Deny),
        ("/home/me/.gemini/policies/a.toml", "admin/b.toml", Effect::Deny),
        (
            "/home/me/.gemini/extensions/x/policies/a.toml",
            "/home/me/.gemini/extensions/x/policies/b.toml",
            Effect::Deny,
        ),
    ] {
        for files in [
            [(allowing, allow.as_str()), (denying, deny.as_str())],
            [(denying, deny.as_str()), (allowing, allow.as_str())],
        ] {
            let effect = gate(&files, &root).decide(&Request::shell("mk x")).effect;
            assert_eq!(effect, expected, "{allowing} {denying}");
        }
    }
}
