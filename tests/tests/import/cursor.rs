//! Cursor.

use super::{Dice, Line, Model, PROGRAMS, Says, every_part, hold, start};
use cmdgate_harness::import::{Source, SourceFile, import};
use cmdgate_policy::{Effect, Policy};

#[derive(Debug)]
struct Cursor {
    /// `terminalAllowlist`: beginnings of commands.
    list: Vec<String>,
    /// `Shell(…)`: first words of commands.
    allow: Vec<&'static str>,
    deny: Vec<&'static str>,
}

impl Model for Cursor {
    const SOURCE: Source = Source::Cursor;

    fn make(dice: &mut Dice) -> Self {
        let names =
            |dice: &mut Dice, most| (0..dice.below(most)).map(|_| dice.pick(PROGRAMS)).collect::<Vec<_>>();
        Self {
            list: (0..dice.below(5)).map(|_| start(dice)).collect(),
            allow: names(dice, 4),
            deny: names(dice, 3),
        }
    }

    fn file(&self) -> String {
        let of = |names: &[&str]| names.iter().map(|name| format!("Shell({name})")).collect::<Vec<_>>();
        let permissions = serde_json::json!({"allow": of(&self.allow), "deny": of(&self.deny)});
        serde_json::json!({"terminalAllowlist": self.list, "permissions": permissions}).to_string()
    }

    fn templates(&self) -> Vec<String> {
        let names = self.allow.iter().chain(&self.deny).map(|name| format!("{name} *"));
        self.list.iter().cloned().chain(names).collect()
    }

    fn says(&self, line: &Line) -> Says {
        every_part(line, |part| {
            let text = part.before();
            let first = text.split(' ').next().unwrap_or_default();
            if self.deny.contains(&first) {
                return Says::Deny;
            }
            let listed = |begin: &String| text == *begin || text.starts_with(&format!("{begin} "));
            if self.allow.contains(&first) || self.list.iter().any(listed) {
                Says::Allow
            } else {
                Says::Nothing
            }
        })
    }
}

#[test]
fn what_cursor_denies_or_asks_is_not_allowed() {
    let share = hold::<Cursor>();
    assert!(share > 0.5, "of what the rules allowed, only {share:.2} is allowed");
}

#[test]
fn a_deny_counts_in_any_case() {
    let deny = |text: &str| {
        let name = "cli.json".to_owned();
        let text = format!(r#"{{"permissions":{{"allow":["Shell(git)"],"deny":["{text}"]}}}}"#);
        let policy =
            Policy::default().with_layer(import(Source::Cursor, &[SourceFile { name, text }]).unwrap().layer);
        policy.check_exec(&["git", "push"]).effect
    };
    assert_eq!(
        (deny("Shell(git)"), deny("shell(git)"), deny("Mcp(git:*)")),
        (Effect::Deny, Effect::Deny, Effect::Allow)
    );
}
