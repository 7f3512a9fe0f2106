//! Copilot CLI.

use super::{Dice, Line, Model, Says, every_part, hold, start};
use cmdgate_harness::import::Source;

#[derive(Debug)]
struct Copilot {
    /// `shell(…)`, with or without `:*`.
    allow: Vec<String>,
    deny: Vec<String>,
}

impl Model for Copilot {
    const SOURCE: Source = Source::Copilot;

    fn make(dice: &mut Dice) -> Self {
        let rules = |dice: &mut Dice, most| {
            let one = |dice: &mut Dice| {
                let text = start(dice);
                if dice.one_in(3) { text } else { format!("{text}:*") }
            };
            (0..dice.below(most)).map(|_| one(dice)).collect::<Vec<_>>()
        };
        Self { allow: rules(dice, 6), deny: rules(dice, 3) }
    }

    fn file(&self) -> String {
        let quoted = |text: &String| format!("'shell({})'", text.replace('\'', "'\\''"));
        let allow = self.allow.iter().map(|text| format!("--allow-tool {}", quoted(text)));
        let deny = self.deny.iter().map(|text| format!("--deny-tool={}", quoted(text)));
        let options: Vec<String> = allow.chain(deny).collect();
        format!("#!/bin/sh\nexec copilot --allow-tool 'mcp(x)' \\\n  {}\n", options.join(" \\\n  "))
    }

    fn templates(&self) -> Vec<String> {
        self.allow.iter().chain(&self.allow).chain(&self.deny).map(|text| text.replace(":*", " *")).collect()
    }

    fn says(&self, line: &Line) -> Says {
        every_part(line, |part| {
            let text = part.before();
            let begins = |begin: &str| text == begin || text.starts_with(&format!("{begin} "));
            if self.deny.iter().any(|rule| begins(rule.trim_end_matches(":*"))) {
                return Says::Deny;
            }
            let allows = |rule: &String| match rule.strip_suffix(":*") {
                Some(begin) => begins(begin),
                None => text == *rule,
            };
            if self.allow.iter().any(allows) { Says::Allow } else { Says::Nothing }
        })
    }
}

#[test]
fn what_copilot_denies_or_asks_is_not_allowed() {
    let share = hold::<Copilot>();
    assert!(share > 0.5, "of what the rules allowed, only {share:.2} is allowed");
}
