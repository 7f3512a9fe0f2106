//! Claude Code.

use super::{Dice, ENDS, Line, Model, PROGRAMS, Part, Says, WORDS, every_part, hold, start, wild};
use cmdgate_harness::gate::{Gate, Request};
use cmdgate_harness::import::{Carried, Source, SourceFile, import};
use cmdgate_policy::{ApprovalPolicy, Effect, Policy, SandboxMode};

#[derive(Debug)]
struct Claude {
    allow: Vec<String>,
    ask: Vec<String>,
    deny: Vec<String>,
    edits: bool,
}

/// What may stand behind a command and is in none of its words, as the lines of the tests have it.
const BEHIND: &[&str] = &["> out.txt", ">> src/a.rs", "2>/dev/null", "< a.txt", "2>&1", "# later", "<"];

fn specifier(dice: &mut Dice) -> String {
    let program = dice.pick(PROGRAMS);
    let words = |dice: &mut Dice, count| {
        (0..count).map(|_| dice.pick(WORDS).to_owned()).collect::<Vec<_>>().join(" ")
    };
    let few = dice.below(3);
    let start = format!("{program} {}", words(dice, few)).trim().to_owned();
    let made = match dice.below(12) {
        0 => program.to_owned(),
        1 => start,
        2..=4 => format!("{start} *"),
        5 | 6 => format!("{start}:*"),
        7 => format!("{start}*"),
        8 => format!("{program} * {}", dice.pick(WORDS)),
        9 => format!("* {}", dice.pick(WORDS)),
        10 => format!("{start} \"{}\" *", dice.pick(WORDS)),
        _ => format!("{program} * {} *", dice.pick(WORDS)),
    };
    // Single spaces: how often a space stands is a matter of spelling.
    made.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// "exact, prefix with a word boundary, or `*` for anything".
fn matches(specifier: &str, text: &str) -> bool {
    let specifier = specifier.trim();
    let bound = specifier.strip_suffix(":*").or(specifier.strip_suffix(" *"));
    match bound.map(str::trim_end) {
        Some("") => true,
        Some(start) => wild(start, text) || wild(&format!("{start} *"), text),
        None => wild(specifier, text),
    }
}

/// Wrappers that are taken away before a rule is looked up.
const STRIPPED: &[&str] = &["timeout 5", "time", "nice", "nohup", "command"];

impl Claude {
    fn part(&self, part: &Part) -> Says {
        let text = part.text();
        let with_wrapper = format!("{} {text}", part.wrapper.unwrap_or_default()).trim().to_owned();
        let with_all = format!("{} {with_wrapper}", part.assignment.unwrap_or_default()).trim().to_owned();
        let stripped = part.wrapper.is_none_or(|wrapper| STRIPPED.contains(&wrapper));
        let mut seen = vec![with_wrapper.clone(), with_all];
        // With all that stands before and behind the words.
        let mut whole = vec![part.whole()];
        if stripped {
            whole.push(Part { wrapper: None, assignment: None, ..part.clone() }.whole());
        }
        if stripped {
            seen.push(text.clone());
        }
        let any = |rules: &[String]| {
            rules.iter().any(|rule| seen.iter().chain(&whole).any(|text| matches(rule, text)))
        };
        if any(&self.deny) {
            return Says::Deny;
        }
        if any(&self.ask) {
            return Says::Ask;
        }
        let writes = part.redirect.is_some_and(|to| to.contains('>') && to.ends_with(['t', 's']));
        if part.assignment.is_some() || writes && !self.edits {
            return Says::Nothing;
        }
        let text = if stripped { &text } else { &with_wrapper };
        let words = part.words();
        let starts_others = ["watch", "setsid", "ionice", "flock"]
            .contains(&text.split(' ').next().unwrap_or(""))
            || words[0] == "find" && words.iter().any(|word| word.starts_with("-exec") || *word == "-delete");
        let allows = |rule: &String| {
            let exact = !rule.contains('*');
            (exact || !starts_others) && matches(rule, text)
        };
        if self.allow.iter().any(allows) { Says::Allow } else { Says::Nothing }
    }
}

impl Model for Claude {
    const SOURCE: Source = Source::Claude;

    fn make(dice: &mut Dice) -> Self {
        let rules =
            |dice: &mut Dice, most| (0..dice.below(most)).map(|_| specifier(dice)).collect::<Vec<_>>();
        let (allow, mut ask, mut deny) = (rules(dice, 7), rules(dice, 3), rules(dice, 3));
        // Rules that name what is in no word of a command, or may do so.
        for strict in [&mut ask, &mut deny] {
            if dice.one_in(3) {
                let start = start(dice);
                let behind = dice.pick(BEHIND);
                let end = dice.pick(ENDS);
                strict.push(match dice.below(16) {
                    12 => format!("*{end}"),
                    13 | 14 => format!("{start} *{end}"),
                    15 => format!("{start} *{end} *"),
                    0 => format!("*{behind}"),
                    1 | 2 => format!("{start} *{behind}*"),
                    3 | 4 => format!("{start}{behind}"),
                    _ => format!("{start} {behind}"),
                });
            }
        }
        Self { allow, ask, deny, edits: dice.one_in(4) }
    }

    fn file(&self) -> String {
        let of = |rules: &[String]| rules.iter().map(|rule| format!("Bash({rule})")).collect::<Vec<_>>();
        let mut allow = of(&self.allow);
        if self.edits {
            allow.push("Edit".to_owned());
        }
        serde_json::json!({"permissions": {"allow": allow, "ask": of(&self.ask), "deny": of(&self.deny)}})
            .to_string()
    }

    fn templates(&self) -> Vec<String> {
        let rules = self.allow.iter().chain(&self.allow).chain(&self.ask).chain(&self.deny);
        rules.map(|rule| rule.replace(":*", " *").replace('"', "")).collect()
    }

    fn says(&self, line: &Line) -> Says {
        let all = every_part(line, |part| self.part(part));
        // What 2.1.197 asks about, whatever its rules allow.
        let opaque = line.subshell || line.parts.iter().any(|part| part.inside.is_some());
        if opaque && all == Says::Allow { Says::Nothing } else { all }
    }
}

#[test]
fn what_claude_code_denies_or_asks_is_not_allowed() {
    let share = hold::<Claude>();
    assert!(share > 0.6, "of what the rules allowed, only {share:.2} is allowed");
}

/// What the imported rules decide about a command line where `npm` and everything else is allowed.
fn effect_with(strict: &str, rule: &str, line: &str) -> Effect {
    let rules = serde_json::json!({"permissions": {"allow": ["Bash(npm:*)", "Bash(git:*)", "Edit"],
        strict: [format!("Bash({rule})")]}});
    let file = SourceFile { name: "settings.json".to_owned(), text: rules.to_string() };
    let imported = import(Source::Claude, &[file]).unwrap();
    assert!(imported.entries.iter().any(|entry| entry.carried == Carried::Stricter), "{rule}");
    let policy = Policy::default().with_layer(imported.layer);
    let mut settings = policy.settings();
    settings.sandbox = Some(SandboxMode::WorkspaceWrite);
    settings.approval = Some(ApprovalPolicy::OnRequest);
    let root = tempfile::tempdir().unwrap();
    Gate::new(root.path(), policy, settings).unwrap().decide(&Request::shell(line)).effect
}

/// What 2.1.197 itself did with a rule for this program: it asked about some, and ran the others.
#[test]
fn what_claude_code_asks_about_without_a_rule_is_not_allowed() {
    for line in
        ["(npm x)", "{ npm x; }", "npm $X", "npm $(npm y)", "npm x `npm y`", "A=1 npm x", "ionice npm x"]
    {
        assert_ne!(effect_with("deny", "rm 'x'", line), Effect::Allow, "{line}");
    }
    for line in [
        "npm x",
        "time npm x",
        "for f in a; do npm x; done",
        "if npm x; then npm y; fi",
        "npm x 2>&1",
        "npm x > /dev/null",
        "npm x # c",
        "nice npm x",
    ] {
        assert_eq!(effect_with("deny", "rm 'x'", line), Effect::Allow, "{line}");
    }
}

#[test]
fn what_is_denied_by_a_redirection_a_comment_or_a_control_word_stays_denied() {
    for (rule, line) in [
        ("npm test > out.txt", "npm test > out.txt"),
        ("npm test>out.txt", "npm test>out.txt"),
        ("*2>&1*", "npm x 2>&1"),
        ("npm test 2>/dev/null", "npm test 2>/dev/null"),
        ("npm * 2>&1", "npm test 2>&1"),
        ("npm test <in", "npm test <in"),
        ("npm test <<EOF*", "npm test <<EOF\nx\nEOF"),
        ("npm test # later", "npm test # later"),
        ("git log > x", "git log > x"),
        ("for *", "for f in a b; do npm test; done"),
        ("if *", "if npm x; then npm test; fi"),
        ("while *", "while npm x; do npm test; done"),
    ] {
        for (strict, expected) in [("deny", Effect::Deny), ("ask", Effect::Ask)] {
            assert_eq!(effect_with(strict, rule, line), expected, "{strict} {rule}: {line}");
        }
    }
    assert_eq!(effect_with("deny", "npm test > out.txt", "npm run lint"), Effect::Allow);
    assert_eq!(effect_with("deny", "for *", "npm run lint"), Effect::Allow);
}
