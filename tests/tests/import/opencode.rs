//! opencode, in both forms of its configuration.

use super::{Dice, ENDS, Line, Model, PROGRAMS, Says, WORDS, every_part, hold, start, wild_with};
use cmdgate_harness::import::{Carried, Source, SourceFile, import};
use cmdgate_policy::{Effect, Policy};
use serde_json::{Value, json};

/// Patterns with what they answer; the last that matches counts. `NEW` is the list, the older one is a map.
#[derive(Debug)]
struct Opencode<const NEW: bool> {
    rules: Vec<(String, &'static str)>,
}

impl<const NEW: bool> Model for Opencode<NEW> {
    const SOURCE: Source = Source::Opencode;
    const IN_EVERY_SPELLING: bool = false;

    fn make(dice: &mut Dice) -> Self {
        let pattern = |dice: &mut Dice| {
            let start = start(dice);
            match dice.below(10) {
                8 => format!("{start} *{}", dice.pick(ENDS)),
                9 => format!("*{}", dice.pick(ENDS)),
                0 => "*".to_owned(),
                1 => start,
                2 => format!("{start}*"),
                3 => format!("{} * {}", dice.pick(PROGRAMS), dice.pick(WORDS)),
                4 => format!("{start} ?"),
                _ => format!("{start} *"),
            }
        };
        let mut rules: Vec<(String, &'static str)> = Vec::new();
        for _ in 0..dice.below(8) {
            let pattern = pattern(dice).split_whitespace().collect::<Vec<_>>().join(" ");
            // A map has every key once.
            if !rules.iter().any(|(known, _)| *known == pattern) {
                rules.push((pattern, dice.pick(&["allow", "allow", "allow", "ask", "deny"])));
            }
        }
        Self { rules }
    }

    fn file(&self) -> String {
        if NEW {
            let rule = |(pattern, effect): &(String, &str)| json!({"action": "shell", "resource": pattern, "effect": effect});
            return json!({"permissions": self.rules.iter().map(rule).collect::<Vec<_>>()}).to_string();
        }
        let map = self.rules.iter().map(|(pattern, effect)| (pattern.clone(), Value::from(*effect)));
        json!({"permission": {"edit": "ask", "bash": Value::Object(map.collect())}}).to_string()
    }

    fn templates(&self) -> Vec<String> {
        self.rules
            .iter()
            .map(|(pattern, _)| pattern.replace('?', "x"))
            .filter(|pattern| pattern != "*")
            .collect()
    }

    fn says(&self, line: &Line) -> Says {
        every_part(line, |part| {
            let text = part.whole();
            let matches = |pattern: &str| {
                let bare = pattern.strip_suffix(" *").filter(|_| NEW);
                wild_with(pattern, &text, Some('?'))
                    || bare.is_some_and(|bare| wild_with(bare, &text, Some('?')))
            };
            match self.rules.iter().rev().find(|(pattern, _)| matches(pattern)) {
                Some((_, "allow")) => Says::Allow,
                Some((_, "ask")) => Says::Ask,
                Some((_, _)) => Says::Deny,
                None => Says::Nothing,
            }
        })
    }
}

#[test]
fn what_opencode_denies_or_asks_is_not_allowed() {
    let share = hold::<Opencode<true>>();
    assert!(share > 0.5, "of what the rules allowed, only {share:.2} is allowed");
}

#[test]
fn what_the_older_opencode_denies_or_asks_is_not_allowed() {
    let share = hold::<Opencode<false>>();
    assert!(share > 0.5, "of what the rules allowed, only {share:.2} is allowed");
}

fn files(texts: &[&str]) -> Vec<SourceFile> {
    let file = |text: &&str| SourceFile { name: "opencode.json".to_owned(), text: (*text).to_owned() };
    texts.iter().map(file).collect()
}

/// As `opencode debug agent build` of 1.18.33 lists the rules of two files: a key stays where the first has it.
#[test]
fn several_files_are_one_map() {
    for (texts, cases) in [
        (
            &[
                r#"{"permission":{"bash":{"rm *":"deny","*":"ask"}}}"#,
                r#"{"permission":{"bash":{"rm *":"allow","git *":"allow"}}}"#,
            ][..],
            &[("rm x", Effect::Ask), ("git x", Effect::Allow), ("mk x", Effect::Ask)][..],
        ),
        (
            &[r#"{"permission":{"*":"ask","bash":{"rm *":"deny"}}}"#, r#"{"permission":{"*":"allow"}}"#],
            &[("rm x", Effect::Deny), ("mk x", Effect::Allow)],
        ),
        (
            &[r#"{"permission":"ask"}"#, r#"{"permission":{"bash":{"git *":"allow"}}}"#],
            &[("git x", Effect::Allow), ("mk x", Effect::Ask)],
        ),
        (
            &[r#"{"permission":{"bash":"deny","*":"ask"}}"#, r#"{"permission":{"bash":{"git *":"allow"}}}"#],
            &[("git x", Effect::Ask)],
        ),
        (
            &[r#"{"permission":{"bash":{"git *":"allow"}}}"#, r#"{"permission":"deny"}"#],
            &[("git x", Effect::Deny)],
        ),
        // The oldest form, which any rule for the tool replaces.
        (&[r#"{"tools":{"bash":false}}"#], &[("git x", Effect::Deny)]),
        (&[r#"{"tools":{"bash":false}}"#, r#"{"permission":{"*":"allow"}}"#], &[("git x", Effect::Allow)]),
        (
            &[r#"{"tools":{"bash":false},"permission":{"bash":{"git *":"allow"}}}"#],
            &[("git x", Effect::Allow), ("mk x", Effect::Ask)],
        ),
    ] {
        let policy = Policy::default().with_layer(import(Source::Opencode, &files(texts)).unwrap().layer);
        for (line, expected) in cases {
            let words: Vec<&str> = line.split(' ').collect();
            assert_eq!(policy.check_exec(&words).effect, *expected, "{texts:?}: {line}");
        }
    }
}

#[test]
fn what_the_agent_build_denies_is_denied() {
    for of_build in [
        r#""agent":{"build":{"permission":{"bash":{"rm *":"deny","rm ok":"allow","npm *":"allow"}}}}"#,
        r#""mode":{"build":{"permission":{"bash":{"rm *":"deny","rm ok":"allow","npm *":"allow"}}}}"#,
    ] {
        let text = format!(r#"{{"permission":{{"bash":{{"rm *":"allow","git *":"allow"}}}},{of_build}}}"#);
        let imported = import(Source::Opencode, &files(&[&text])).unwrap();
        assert!(imported.count(Carried::Not) >= 2, "{:?}", imported.entries);
        let policy = Policy::default().with_layer(imported.layer);
        for (words, expected) in [
            (&["rm", "x"][..], Effect::Deny),
            (&["rm", "ok"], Effect::Allow),
            (&["git", "x"], Effect::Allow),
            (&["npm", "x"], Effect::Ask),
        ] {
            assert_eq!(policy.check_exec(words).effect, expected, "{text}: {words:?}");
        }
    }
    let switched = r#"{"permission":{"bash":"allow"},"agent":{"build":{"tools":{"bash":false}}}}"#;
    let policy = Policy::default().with_layer(import(Source::Opencode, &files(&[switched])).unwrap().layer);
    assert_eq!(policy.check_exec(&["git", "x"]).effect, Effect::Deny);
}

#[test]
fn both_forms_beside_each_other_are_refused() {
    let error = import(
        Source::Opencode,
        &files(&[
            r#"{"permission":{"bash":"deny"}}"#,
            "{\n\"permissions\":[{\"action\":\"shell\",\"resource\":\"*\",\"effect\":\"allow\"}]}",
        ]),
    )
    .unwrap_err();
    assert_eq!(error.line, 2, "{error}");
}
