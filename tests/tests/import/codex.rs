//! Codex.

use super::cli::refuses;
use super::{Dice, Line, Model, PROGRAMS, Says, WORDS, hold};
use cmdgate_harness::import::{Carried, Source, SourceFile, import};
use cmdgate_policy::{Effect, Policy};

#[derive(Debug)]
struct Codex {
    /// At each place the choices, and the decision.
    rules: Vec<(Vec<Vec<&'static str>>, &'static str)>,
}

impl Model for Codex {
    const SOURCE: Source = Source::Codex;

    fn make(dice: &mut Dice) -> Self {
        let rule = |dice: &mut Dice| {
            let mut words = vec![vec![dice.pick(PROGRAMS)]];
            for _ in 0..dice.below(3) {
                words.push((0..=dice.below(5) / 3).map(|_| dice.pick(WORDS)).collect());
            }
            (words, dice.pick(&["allow", "allow", "allow", "prompt", "forbidden"]))
        };
        Self { rules: (0..dice.below(7)).map(|_| rule(dice)).collect() }
    }

    fn file(&self) -> String {
        let mut out = String::new();
        for (words, decision) in &self.rules {
            let pattern: Vec<String> = words
                .iter()
                .map(|choices| match choices.as_slice() {
                    [word] => format!("{word:?}"),
                    many => format!("{many:?}"),
                })
                .collect();
            let example: Vec<&str> = words.iter().map(|choices| choices[0]).collect();
            out += &format!(
                "prefix_rule(\n    pattern = [{}],\n    decision = {decision:?},\n    match = [{example:?}],\n)\n",
                pattern.join(", ")
            );
        }
        out
    }

    fn templates(&self) -> Vec<String> {
        let text =
            |words: &Vec<Vec<&str>>| words.iter().map(|choices| choices[0]).collect::<Vec<_>>().join(" ");
        self.rules.iter().map(|(words, _)| text(words)).collect()
    }

    fn says(&self, line: &Line) -> Says {
        // Anything but plain commands is opaque.
        let plain = |part: &super::Part| {
            part.assignment.is_none() && part.redirect.is_none() && part.inside.is_none()
        };
        if line.subshell || !line.parts.iter().all(plain) {
            return Says::Nothing;
        }
        let mut strictest = Says::Allow;
        for part in &line.parts {
            let wrapper = part.wrapper.unwrap_or_default().split_whitespace();
            let argv: Vec<&str> = wrapper.chain(part.words()).collect();
            let begins = |words: &Vec<Vec<&str>>| {
                argv.len() >= words.len()
                    && words.iter().zip(&argv).all(|(choices, word)| choices.contains(word))
            };
            let matching: Vec<&str> =
                self.rules.iter().filter(|(words, _)| begins(words)).map(|(_, decision)| *decision).collect();
            let says = if matching.contains(&"forbidden") {
                Says::Deny
            } else if matching.contains(&"prompt") {
                Says::Ask
            } else if matching.contains(&"allow") {
                Says::Allow
            } else {
                Says::Nothing
            };
            let rank = |says: Says| {
                [Says::Allow, Says::Nothing, Says::Ask, Says::Deny].iter().position(|s| *s == says)
            };
            if rank(says) > rank(strictest) {
                strictest = says;
            }
        }
        strictest
    }
}

#[test]
fn what_codex_denies_or_asks_is_not_allowed() {
    let share = hold::<Codex>();
    assert!(share > 0.5, "of what the rules allowed, only {share:.2} is allowed");
}

#[test]
fn rules_are_read_with_names_lists_and_loops() {
    let text = r#"
# Mine.
tools = ["test", "build"]
why = "they only " + "build"
for tool in tools:
    prefix_rule(pattern = ["cargo", tool], justification = f"{why}", match = [f"cargo {tool} --all"], not_match = ["cargo publish"])
[prefix_rule(pattern = ["npm", "run", name]) for name in ["lint", "unit"]]
prefix_rule(pattern = ["git", ["push", "fetch"]], decision = "prompt")
prefix_rule(pattern = ["git"], decision = "allow", match = ["git status", ["git", "log"], "/usr/bin/git log"])
host_executable(name = "git", paths = ["/usr/bin/git"])
prefix_rule(pattern = ["mk"], match = ["./mk", "a/mk x", "/opt/mk"], not_match = ["mk/x"])
network_rule(host = "evil.example", protocol = "https", decision = "forbidden")
prefix_rule(pattern = ["rm", "-rf"], decision = "forbidden", justification = "never")
"#;
    let file = SourceFile { name: "default.rules".to_owned(), text: text.to_owned() };
    let imported = import(Source::Codex, &[file]).unwrap();
    let toml = imported.to_toml().unwrap();
    assert!(toml.contains("they only build"), "{toml}");
    assert_eq!(imported.count(Carried::Exactly), 8, "{:?}", imported.entries);
    let layers = cmdgate_policy::PolicyFile::parse("imported", &toml).unwrap().into_layers("imported");
    let policy = layers.into_iter().fold(Policy::default(), Policy::with_layer);
    for (argv, effect) in [
        (&["cargo", "test", "--all"][..], Effect::Allow),
        (&["cargo", "publish"], Effect::Ask),
        (&["npm", "run", "unit"], Effect::Allow),
        (&["git", "status"], Effect::Allow),
        (&["git", "push"], Effect::Ask),
        (&["git", "status x"], Effect::Allow),
        (&["git status", "x"], Effect::Ask),
        (&["/bin/rm", "-rf", "x"], Effect::Deny),
    ] {
        assert_eq!(policy.check_exec(argv).effect, effect, "{argv:?}");
    }
}

/// What the real program was seen to decide, 0.171.0 with `codex execpolicy check`.
#[test]
fn names_mean_what_they_mean_to_codex() {
    for (text, argv, effect) in [
        // The names of such a loop are its own.
        (
            "d = \"forbidden\"\nx = [d for d in [\"allow\"]]\nprefix_rule(pattern = [\"rm\"], decision = d)",
            &["rm", "x"][..],
            Effect::Deny,
        ),
        (
            "p = \"rm\"\n[prefix_rule(pattern = [p]) for p in [\"ls\"]]\nprefix_rule(pattern = [p], decision = \"forbidden\")",
            &["rm", "x"],
            Effect::Deny,
        ),
        // Those of a statement are not.
        (
            "for p in [\"ls\", \"rm\"]:\n    pass\nprefix_rule(pattern = [p], decision = \"forbidden\")",
            &["rm", "x"],
            Effect::Deny,
        ),
        ("x = \"a\"\nprefix_rule(pattern = [\"mk\", f\"{{x}}{x}\"])", &["mk", "{x}a"], Effect::Allow),
        ("x = \"a\"\nx += \"b\"\nprefix_rule(pattern = [\"mk\", x])", &["mk", "ab"], Effect::Allow),
        ("prefix_rule(pattern = [\"mk\"], match = [\"/opt/mk x\"])", &["mk"], Effect::Allow),
    ] {
        let file = SourceFile { name: "default.rules".to_owned(), text: text.to_owned() };
        let imported = import(Source::Codex, &[file]).unwrap();
        let policy = Policy::default().with_layer(imported.layer);
        assert_eq!(policy.check_exec(argv).effect, effect, "{text}");
    }
    let file = SourceFile {
        name: "default.rules".to_owned(),
        text: "network_rule(host = \"Evil.example:443\", protocol = \"https\", decision = \"deny\")"
            .to_owned(),
    };
    let imported = import(Source::Codex, &[file]).unwrap();
    assert_eq!(imported.layer.rules[0].pattern.as_str(), "evil.example");
}

#[test]
fn bad_rules_of_codex_are_refused_with_their_line() {
    let deep = format!("x = {}", "(".repeat(100_000));
    let minus = format!("x = {}1", "- ".repeat(60_000));
    let sum = format!("x = {}\"a\"", "\"a\" + ".repeat(20_000));
    let choice = format!("x = {}1", "1 if 1 else ".repeat(15_000));
    let doubling = format!("x = \"aaaaaaaaaaaaaaaa\"\n{}", "x = x + x\n".repeat(60));
    let inner = "[y for y in [0,0,0,0,0,0,0,0,0,0]]";
    let loops = format!(
        "x = [1 for a in {0} for b in {0} for c in {0} for d in {0} for e in {0} for f in {0}]",
        inner.replace('0', "\"\"")
    );
    let huge = format!("# {}", "x".repeat(300_000));
    refuses(
        "codex",
        &[
            ("prefix_rule(pattern = [\"git\"], match = [\"npm test\"])", 1),
            ("\nprefix_rule(pattern = [\"git\"], not_match = [\"git status\"])", 2),
            ("prefix_rule(pattern = [\"git\"], match = [\"git 'x\"])", 1),
            ("prefix_rule(pattern = [])", 1),
            ("prefix_rule(pattern = \"git\")", 1),
            ("prefix_rule(pattern = [\"git\", 7])", 1),
            ("prefix_rule(pattern = [\"git\", []])", 1),
            ("prefix_rule(pattern = [\"git\"], decision = \"maybe\")", 1),
            ("prefix_rule(pattern = [\"git\"], when = \"now\")", 1),
            ("prefix_rule(decision = \"allow\")", 1),
            // A file that Codex does not take has no rule that allows.
            ("prefix_rule(pattern = (\"git\", \"x\"))", 1),
            ("prefix_rule(pattern = [\"git\", (\"x\", \"y\")])", 1),
            ("prefix_rule(pattern = [\"git\"], match = (\"git\",))", 1),
            ("prefix_rule(pattern = [\"git\"], match = [\"\"])", 1),
            ("prefix_rule(pattern = [\"git\"], match = None)", 1),
            ("prefix_rule(pattern = [\"git\"], decision = None)", 1),
            ("prefix_rule(pattern = [\"git\"], decision = \"deny\")", 1),
            ("prefix_rule(pattern = [\"git\"], justification = \" \")", 1),
            ("prefix_rule(pattern = [\"git\"], not_match = [\"/usr/bin/git x\"])", 1),
            (
                "prefix_rule(pattern = [\"git\"], match = [\"/usr/bin/git x\"])\n\
                 host_executable(name = \"git\", paths = [\"/bin/git\"])",
                1,
            ),
            ("host_executable(name = \"git\", paths = [\"/bin/hg\"])", 1),
            ("network_rule(host = \"*.a.example\", protocol = \"https\", decision = \"deny\")", 1),
            ("network_rule(host = \"a.example\", protocol = \"ftp\", decision = \"deny\")", 1),
            ("prefix_rule(pattern = [\"git\"])\nprefix_rule = \"x\"", 2),
            ("True = False", 1),
            ("[p for p in [\"git\"]]\nprefix_rule(pattern = [p])", 2),
            // A list that grows does so under all of its names.
            ("a = [\"git\"]\nb = a\nb += [\"push\"]\nprefix_rule(pattern = a)", 3),
            ("load(\"other.rules\", \"x\")", 1),
            ("\n\nopen(\"/etc/passwd\")", 3),
            ("print(\"x\")", 1),
            ("def f():\n    f()\nf()", 1),
            ("if True:\n    prefix_rule(pattern = [\"git\"])", 1),
            ("x = [1] * 1000000000", 1),
            ("for x in range(1000000000):\n    pass", 1),
            ("prefix_rule(\n", 0),
            (&deep, 1),
            (&minus, 1),
            (&sum, 1),
            (&choice, 1),
            (&doubling, 0),
            (&loops, 1),
            (&huge, 1),
        ],
    );
}
